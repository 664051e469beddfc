"""Tuning on the recorded BERT candidates of 2023: speed of its core, and scores of tuned rules on unseen subjects.

Speed: the exact sweep of all relations' cut-offs, and one parameter set (a cut-off per relation). Each is compared with
one official evaluation of the same rows in memory. Quality: official macro-F1 out of fold and in sample. One global
cut-off chosen in sample is shown beside them.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

import numpy as np

from eval.bench import few_of, parsed, timed
from eval.bench.figures import Table
from eval.bench.recorded import ROWS, context_of, proposed, row_parser, tuned_rules
from lmkbc.edition import Edition
from lmkbc.recipe import read_recipe
from lmkbc.run.submission import answers
from lmkbc.select.cutoffs import Cutoff
from lmkbc.tune.outcomes import Curve, Outcomes, cutoff_steps
from lmkbc.tune.tuning_set import TRIALS, TuningOptions
from lmkbc.types import CandidateSet, Example
from lmkbc.workspace import Workspace

ANSWERS = ("BERT", "BERT-recode")
"""Rows of the recorded answers. Their authors' F1 is of a cut-off per relation, 5-fold."""


def main(argv: Sequence[str]) -> None:
    parser = row_parser(__doc__)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--limit", type=int, help="queries of a split, about so many, evenly spaced")
    parser.add_argument("--answers", nargs="+", default=ANSWERS, choices=ANSWERS, help="of the benchmark 'recorded'")
    given = parsed(parser, argv, answers=["BERT"], folds=2, trials=0, limit=80)
    workspace, table = Workspace(data=given.data), Table("tuning", "answers")
    edition = workspace.edition("2023")
    examples = few_of(workspace.examples(edition, "val"), given.limit)
    how = TuningOptions(folds=given.folds, trials=given.trials, seed=given.seed)
    for name in given.answers:
        run = context_of(workspace, edition, ROWS[name].files)
        recipe = read_recipe(workspace, "recorded")
        sets = proposed(run, recipe, examples)
        tuned, _, seconds = timed(tuned_rules, sets, examples, edition, run.relations, how, recipe.select)
        scores = {
            "out of fold": tuned.cv_macro_f1,
            "in sample": tuned.insample_macro_f1,
            "one cut-off": global_cutoff(sets, examples, edition),
            "their authors": ROWS[name].authors or 0.0,
        }
        table.add(name, {what: f"{score:.4f}" for what, score in scores.items()}, seconds=f"{seconds:.1f}")
    speed(sets, examples, edition, 3 if given.small else 31)


def by_relation(sets: Sequence[CandidateSet], examples: Sequence[Example], edition: Edition) -> list[Outcomes]:
    grouped: dict[str, list[int]] = {}
    for row, found in enumerate(sets):
        grouped.setdefault(found.query.relation, []).append(row)
    return [Outcomes([sets[i] for i in rows], [examples[i] for i in rows], edition) for rows in grouped.values()]


def global_cutoff(sets: Sequence[CandidateSet], examples: Sequence[Example], edition: Edition) -> float:
    outcomes = by_relation(sets, examples, edition)
    curves = [(Curve.of(cutoff_steps(one), np.ones(len(one), dtype=np.bool_)), len(one)) for one in outcomes]
    thresholds = np.unique([candidate.score for found in sets for candidate in found.candidates])
    means = [curve.totals[np.searchsorted(curve.falling, -thresholds, side="right")] / n for curve, n in curves]
    return float(np.mean(means, axis=0).max())


def speed(sets: Sequence[CandidateSet], examples: Sequence[Example], edition: Edition, times: int) -> None:
    """Print the cost of one official evaluation, and of the same by a sweep and by caches."""
    outcomes = by_relation(sets, examples, edition)
    pairs = {(x.query.subject, x.query.relation): edition.gold_column(x) for x in examples}
    rule = Cutoff(threshold=0.05)
    predicted = {(s.query.subject, s.query.relation): answers(edition, rule.select(s)) for s in sets}
    _, _, once = timed(lambda: [one.prefix_f1 for one in outcomes])
    print(f"prefix scores, once: {1e3 * once:.1f} ms")

    def sweep() -> list[Curve]:
        return [Curve.of(cutoff_steps(one), np.ones(len(one), dtype=np.bool_)) for one in outcomes]

    curves = sweep()
    ways: dict[str, Callable[[], object]] = {
        f"one official evaluation of {len(sets)} rows": lambda: edition.metric.evaluate(predicted, pairs),
        f"exact sweep of {sum(len(one.candidates) for one in sets)} candidates": lambda: [x.best() for x in sweep()],
        "one parameter set, cut-off per relation": lambda: sum(curve.total(0.05) for curve in curves),
        "one parameter set, any prefix rule": lambda: [one.f1(rule) for one in outcomes],
    }
    spent = {name: statistics.median(timed(run).wall for _ in range(times)) for name, run in ways.items()}
    whole = next(iter(spent.values()))
    for name, seconds in spent.items():
        print(f"{name}: {1e3 * seconds:.3f} ms, {whole / seconds:.1f} x as fast as an official evaluation")
