"""Precision of recorded answers of real models on unseen subjects, and how well confidences predict it.

    python eval/bench/precision.py [--data DIR] [--folds N] [--seed N] [--figures FILE] [ROW ...]

Each row shows recall at 90 % precision, out of fold, with its 95 % interval over subjects and the number of relations
that reach it. Then it shows the facts that `--precision 0.9` keeps out of fold: their number, precision with its
interval, recall, and relations. Two more numbers count the relations that fall short, and those that promise it when
all folds are known. Last are adaptive calibration error and Brier score of pooled scores and of confidences, with half
their intervals, and seconds.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import figures
from recorded import ROWS, context_of, row_parser

from lmkbc.cli.terminal import error_status
from lmkbc.pipeline import propose
from lmkbc.recipe import read_recipe
from lmkbc.select.cutoffs import Cutoff
from lmkbc.tune.confidence import Confidences, Reliability
from lmkbc.tune.tune import tune
from lmkbc.workspace import Workspace

SHOWN = ("GPT-4", "GPT-3", "BERT", "BERT-recode+embedded", "Qwen+Gemma")


def main(argv: Sequence[str] | None = None) -> None:
    parser = row_parser(__doc__, ROWS)
    given = parser.parse_args(argv)
    workspace = Workspace(data=given.data)
    values: dict[str, dict[str, str]] = {}
    for name in given.rows or SHOWN:
        row = ROWS[name]
        edition = workspace.edition(row.edition)
        examples = workspace.examples(edition, edition.held_out)
        context = context_of(workspace, edition, row.files)
        proposals = propose(context, read_recipe(workspace, row.system), [example.query for example in examples])
        start = time.process_time()
        tuned = tune(  # confidences cover all candidates, so the tuned rule does not matter
            proposals.sets,
            examples,
            edition,
            relations=context.relations,
            rules=[Cutoff.name],
            folds=given.folds,
            trials=0,
            seed=given.seed,
        )
        values[row.label] = cells(tuned.confidences)
        print(f"{name:20} {row.edition}  {as_text(tuned.confidences)}; {time.process_time() - start:.0f} s", flush=True)
    figures.record(given.figures, "precision", values)


def cells(known: Confidences) -> dict[str, str]:
    """Return a row's figures as documents show them."""
    low, high = known.recall_interval
    kept, both = known.kept, (known.raw, known.calibrated)
    found = {
        "R@P90": f"{known.recall:.3f} [{low:.3f}, {high:.3f}]",
        "relations": f"{known.reached} of {len(known.relations)}",
        "kept: facts, relations": f"{kept.facts}, {kept.relations}",
        "adaptive error, score / confidence": " / ".join(f"{one.ace:.4f} ± {one.ace_spread:.4f}" for one in both),
        "Brier, score / confidence": " / ".join(f"{one.brier:.4f} ± {one.brier_spread:.4f}" for one in both),
    }
    if kept.precision is not None and kept.interval is not None:
        low, high = kept.interval
        found["precision"] = f"{kept.precision:.3f} [{low:.3f}, {high:.3f}]"
        found["recall"] = f"{kept.recall:.3f}"
    return found


def as_text(known: Confidences) -> str:
    """Return a row's figures as text."""
    low, high = known.recall_interval
    recall = f"R@P90 {known.recall:.3f} [{low:.3f}, {high:.3f}], {known.reached} of {len(known.relations)} relations"
    kept = known.kept
    sure = "nothing"
    if kept.precision is not None and kept.interval is not None:
        low, high = kept.interval
        sure = (
            f"{kept.facts} facts, precision {kept.precision:.3f} [{low:.3f}, {high:.3f}], recall {kept.recall:.3f}, "
            f"{kept.relations} relations, {kept.broken} below, {known.promising} promise it"
        )
    return f"{recall}; --precision 0.9: {sure}; scores {errors(known.raw)}; confidences {errors(known.calibrated)}"


def errors(known: Reliability) -> str:
    """Return the two errors as text, with half their intervals."""
    return f"ACE {known.ace:.4f} +- {known.ace_spread:.4f}, Brier {known.brier:.4f} +- {known.brier_spread:.4f}"


if __name__ == "__main__":
    with error_status():
        main()
