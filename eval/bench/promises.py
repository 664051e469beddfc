"""Whether a promised precision of 0.9 holds: thresholds learned on half of the labelled subjects, tried on the others.

Each row is a file of recorded answers. Halves are drawn many times. "precision" is that of all facts that are kept in
all halves. "precise relations" is the share of relations in which at least 0.9 of the facts kept in a half are right,
among those with any. "kept" and "relations" are means over halves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eval.bench import parsed
from eval.bench.figures import Table
from eval.bench.recorded import ROWS, opened, proposed, row_parser
from lmkbc.tune.confidence import Kept, assess
from lmkbc.tune.learn import tasks_of
from lmkbc.tune.tuning_set import UNSCORED, TuningOptions, TuningSet
from lmkbc.workspace import Workspace

DRAWN = ("GPT-4", "GPT-3.5", "Qwen")


def main(argv: Sequence[str]) -> None:
    parser = row_parser(__doc__, *DRAWN, figures=True)
    parser.add_argument("--halves", type=int, default=200, help="draws of half of the subjects")
    parser.add_argument("--limit", type=int, help="queries of a split, about so many, evenly spaced")
    given = parsed(parser, argv, rows=["Qwen"], halves=2, folds=2, limit=40)
    workspace, table = Workspace(data=given.data), Table("promises", "recorded answers", given.figures)
    for row in map(ROWS.__getitem__, given.rows):
        edition, examples, run, recipe = opened(workspace, row, given.limit)
        sets = proposed(run, recipe, examples)
        options = TuningOptions(trials=0, folds=given.folds, seed=given.seed)
        tasks = tasks_of(TuningSet(sets, examples, edition, run.relations, recipe.select, options))
        chance = np.random.default_rng(given.seed)
        kept: dict[str, list[Kept]] = {}
        for _ in range(given.halves):
            scored, inner = {}, {}
            for name, task in tasks.items():
                size = len(task.outcomes)
                scored[name] = np.where(chance.permutation(size) % 2, UNSCORED, 0)
                inner[name] = chance.permutation(size) % given.folds
            for promise, half in assess(tasks, {}, scored, inner).kept.items():
                kept.setdefault(promise, []).append(half)
        for promise, halves in kept.items():
            facts, relations = sum(one.facts for one in halves), sum(one.relations for one in halves)
            right = sum(one.facts * (one.precision or 0.0) for one in halves)
            broken = sum(one.broken for one in halves)
            table.add(
                f"{row.label}, {promise}",
                {
                    "precision": f"{right / facts:.3f}" if facts else "-",
                    "precise relations": f"{1 - broken / relations:.3f}" if relations else "-",
                    "relations": f"{relations / len(halves):.1f}",
                    "kept": f"{facts / len(halves):.1f}",
                    "recall": f"{np.mean([one.recall for one in halves]):.3f}",
                },
            )
