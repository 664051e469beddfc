"""`lmkbc tune`: learns, per relation, which selection rule to use and with which parameters."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from lmkbc.api.predicting import estimate
from lmkbc.api.tuning import described
from lmkbc.api.tuning import tune as tune_rules
from lmkbc.commands.dry_run import show_estimate
from lmkbc.commands.terminal import note, progress, show_json, show_table
from lmkbc.commands.typed import made_from
from lmkbc.errors import counted
from lmkbc.types import grouped

if TYPE_CHECKING:
    from lmkbc.tune.confidence import Confidences, Kept
    from lmkbc.tune.learn import Tuned

EXAMPLE = "Example: lmkbc tune --split val --edition 2023 --from gpt4.jsonl.gz --search-table search.json --no-write"


@made_from(tune_rules)
def tune(*, dry_run: bool = False, json: bool = False, **given: Any) -> None:
    """Learn what to keep, per relation. The cross-validated F1 estimates the score on unseen subjects."""
    if dry_run:
        show_estimate(estimate, given, json=json)
        return
    with progress() as report:
        tuning = tune_rules(**given, progress=report)
    if json:
        show_json({"edition": tuning.edition, "split": tuning.split, **_as_json(tuning.tuned)})
    else:
        _print(tuning.tuned, f"{tuning.title}, {tuning.split}")
    if given["reviews"] is not None:
        rows = counted(tuning.reviewed, "row of decided facts was", "rows of decided facts were")
        note(f"{rows} learned from too; no figure above is of them")
    if tuning.path is not None:
        note(f"wrote {tuning.path.absolute()}")
    elif given["write"]:
        note("nothing is written, since a subset of the split was tuned on")


def _as_json(tuned: Tuned) -> dict[str, Any]:
    relations = {
        name: asdict(relation) | {"rule": relation.rule.to_table()} for name, relation in tuned.relations.items()
    }
    return {
        "cv_macro_f1": tuned.cv_macro_f1,
        "untuned_macro_f1": tuned.untuned_macro_f1,
        "insample_macro_f1": tuned.insample_macro_f1,
        "confidence": confidence_json(tuned.confidences),
        "failed": tuned.failed,
        "folds": tuned.options.folds,
        "trials": tuned.options.trials,
        "seed": tuned.options.seed,
        "relations": relations,
    }


def confidence_json(known: Confidences) -> dict[str, Any]:
    """Return the quality of confidences out of fold, with the bins of a reliability diagram."""
    from lmkbc.select.calibration import AVERAGE, OVERALL, SURE
    from lmkbc.tune.tuned_rules import reliability_table

    return {
        "recall_at_precision_90": known.recall,
        "recall_at_precision_90_interval": known.recall_interval,
        "relations_that_reach_it": known.reached,
        "relations_that_promise_it": known.promising(SURE),
        "kept_at_precision_90": asdict(known.kept[SURE]),
        "on_average": {
            "relations_that_promise_it": known.promising(AVERAGE),
            "kept_at_precision_90": asdict(known.kept[AVERAGE]),
        },
        "overall": {"kept_at_precision_90": asdict(known.kept[OVERALL])},
        "raw": reliability_table(known.raw),
        "calibrated": reliability_table(known.calibrated),
        "relations": {
            name: {
                "recall_at_precision_90": relation.recall,
                "curve": asdict(relation.curves[SURE]),
                "average": asdict(relation.curves[AVERAGE]),
            }
            for name, relation in known.relations.items()
        },
    }


def _print(tuned: Tuned, title: str) -> None:
    from lmkbc.tune.tuned_rules import FEW, named_few

    known = tuned.confidences.relations
    rows: list[list[Any]] = []
    for name, relation in sorted(tuned.relations.items()):
        rule = described(relation.rule.to_table()) + (f", at most {relation.most}" if relation.most else "")
        learned = [known[name].recall, rule] if name in known else [None, relation.reason]  # else no answer was read
        rows.append(
            [
                *(name, relation.rows, relation.answered),
                *(relation.untuned_f1, relation.cv_f1, relation.insample_f1),
                *learned,
            ]
        )
    overall = [tuned.untuned_macro_f1, tuned.cv_macro_f1, tuned.insample_macro_f1, tuned.confidences.recall]
    rows.append(["*** Average ***", None, None, *overall, ""])
    columns = ["relation", "rows", "answered", "F1 untuned", "F1 out of fold", "F1 in sample", "R@P90", "rule"]
    show_table(columns, rows, title=title)
    reasons = ((one.reason, name) for name, one in sorted(tuned.relations.items()) if one.reason)
    for reason, names in grouped(reasons).items():
        note(f"{reason}: {', '.join(names)}")
    if few := {name: one.answered for name, one in sorted(tuned.relations.items()) if 0 < one.answered < FEW}:
        note(f"fewer than {FEW} answered rows: {named_few(few)}; confidences are rough there, and marked as such")
    show_table(["confidences, out of fold", "value", "95 % low", "95 % high"], _confidence(tuned.confidences))
    note("precision on facts that Wikidata lacks is often lower: check a sample by hand")
    if tuned.failed:
        note(tuned.unanswered)


def _confidence(known: Confidences) -> list[list[Any]]:
    """Return the quality of confidences, out of fold, as rows: what, value, and the 95 % interval."""
    none = (None, None)
    figures = (("calibration error", "ece"), ("adaptive calibration error", "ace"), ("Brier score", "brier"))
    return [
        ["R@P90: recall at 90 % precision, mean of relations", known.recall, *known.recall_interval],
        [f"  relations that reach it, of {len(known.relations)}", known.reached, *none],
        *(row for promise, kept in known.kept.items() for row in _kept(promise, kept, known.promising(promise))),
        *([f"{what} of scores", getattr(known.raw, key), *none] for what, key in figures),
        *([f"{what} of confidences", getattr(known.calibrated, key), *none] for what, key in figures),
    ]


def _kept(promise: str, kept: Kept, promising: int) -> list[list[Any]]:
    """Return what one promise of 0.9 keeps. promising: number of relations that promise it."""
    from lmkbc.select.calibration import PROMISES

    alone = [["  relations that reach it, learned on all rows", promising, None, None]]
    return [
        [f"--precision 0.9, {promise}: precision", kept.precision, *(kept.interval or (None, None))],
        ["  recall of all gold objects", kept.recall, None, None],
        ["  facts kept", kept.facts, None, None],
        ["  relations with facts kept", kept.relations, None, None],
        ["  of them below 0.9", kept.broken, None, None],
        *([] if PROMISES[promise].together else alone),
    ]
