"""Tuning on the recorded BERT candidates of 2023: speed of its core, and scores of tuned rules on unseen subjects.

    python eval/bench/tuning.py [--data DIR] [--trials N] [--folds N] [--seed N]

Speed: the exact sweep of all relations' cut-offs, and one parameter set (a cut-off per relation). Each is compared with
one official evaluation of the same rows in memory. Quality: official macro-F1 out of fold, the same by exact sweeps
alone (without Optuna), and in sample. One global cut-off chosen in sample is shown beside them.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from recorded import ROWS, context_of

from lmkbc.cli.terminal import error_status
from lmkbc.edition import Edition
from lmkbc.pipeline import propose
from lmkbc.recipe import read_recipe
from lmkbc.run.submission import answers
from lmkbc.select.cutoffs import Cutoff
from lmkbc.tune.defaults import FOLDS, SEED, TRIALS
from lmkbc.tune.outcomes import Curve, Outcomes, cutoff_steps
from lmkbc.tune.tune import tune
from lmkbc.types import CandidateSet, Example
from lmkbc.workspace import Workspace

ANSWERS = ("BERT", "BERT-recode")
"""Rows of the recorded answers. Their authors' F1 is of a cut-off per relation, 5-fold."""


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="directory of the official splits (default: $LMKBC_DATA)")
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--folds", type=int, default=FOLDS)
    parser.add_argument("--seed", type=int, default=SEED)
    given = parser.parse_args(argv)
    workspace = Workspace(data=given.data)
    edition = workspace.edition("2023")
    examples = workspace.examples(edition, "val")
    print("answers          cv F1   swept  in sample  global  authors  seconds")
    for name in ANSWERS:
        context = context_of(workspace, edition, ROWS[name].files)
        sets = propose(context, read_recipe(workspace, "recorded"), [example.query for example in examples]).sets
        start = time.perf_counter()
        tuned = tune(
            sets,
            examples,
            edition,
            relations=workspace.relations,
            folds=given.folds,
            trials=given.trials,
            seed=given.seed,
        )
        seconds = time.perf_counter() - start
        scores = f"{tuned.cv_macro_f1:.4f}  {tuned.cv_macro_f1_without_optuna:.4f}  {tuned.insample_macro_f1:9.4f}"
        rest = f"{global_cutoff(sets, examples, edition):6.4f}  {ROWS[name].authors:7.3f}  {seconds:7.1f}"
        print(f"{name:15}  {scores}  {rest}")
    speed(sets, examples, edition)


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


def speed(sets: Sequence[CandidateSet], examples: Sequence[Example], edition: Edition) -> None:
    outcomes = by_relation(sets, examples, edition)
    pairs = {(x.query.subject, x.query.relation): edition.gold_column(x) for x in examples}
    rule = Cutoff(threshold=0.05)
    predicted = {(s.query.subject, s.query.relation): answers(edition, rule.select(s)) for s in sets}
    start = time.perf_counter()
    for one in outcomes:
        one.changes  # noqa: B018  # computes the cached tables for all that follows
    print(f"prefix scores and their changes, once: {1e3 * (time.perf_counter() - start):.1f} ms")
    everything = [np.ones(len(one), dtype=np.bool_) for one in outcomes]

    def sweep() -> list[Curve]:
        return [Curve.of(cutoff_steps(one), rows) for one, rows in zip(outcomes, everything, strict=True)]

    curves = sweep()
    official = typical(lambda: edition.metric.evaluate(predicted, pairs))
    swept = typical(lambda: [curve.best() for curve in sweep()])
    looked_up = typical(lambda: sum(curve.total(0.05) for curve in curves))
    any_rule = typical(lambda: [one.f1(rule) for one in outcomes])
    count = sum(len(found.candidates) for found in sets)
    print(f"one official evaluation of {len(sets)} rows: {1e3 * official:.3f} ms")
    print(
        f"exact sweep, {len(outcomes)} relations, {count} candidates: {1e3 * swept:.3f} ms ({swept / official:.2f} x)"
    )
    print(f"one parameter set, cut-off per relation: {1e6 * looked_up:.0f} us ({official / looked_up:.0f} x faster)")
    print(f"one parameter set, any prefix rule: {1e6 * any_rule:.0f} us ({official / any_rule:.0f} x faster)")


def typical(run: Callable[[], object], times: int = 31) -> float:
    """Return the median seconds of a call."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


if __name__ == "__main__":
    with error_status():
        main()
