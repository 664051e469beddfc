"""Where a system loses F1: in its candidates, their order, the cut-off, or the answer "there is none".

Columns are the mean F1 of a relation's queries if gold chose. Pool: it chooses among all candidates. Order: it chooses
how many of the best candidates to keep. None: it chooses whether there is an object, and what is kept is the system's,
at least the best candidate. The last one is the system's own F1, by the official scorer, as are the others. Rows of
train are answered out of fold, so that this shows what to improve without a look at the held-out split. But names that
a model writes are linked by all of train, the query's own row included, which is too good where objects need QIDs.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from statistics import fmean

import numpy as np

from eval.bench import parsed, parser_of
from eval.bench.figures import Table
from eval.bench.recorded import proposed
from lmkbc.recipe import read_recipe
from lmkbc.session.run import Run
from lmkbc.tune.learn import tasks_of
from lmkbc.tune.outcomes import Outcomes
from lmkbc.tune.tuning_set import TuningOptions, TuningSet
from lmkbc.workspace import Workspace


def main(argv: Sequence[str]) -> None:
    parser = parser_of(__doc__, figures=True)
    parser.add_argument("--editions", nargs="+", default=("2023", "2025"))
    parser.add_argument("--split", default="train")
    parser.add_argument("--system", default="qwen-coder-embedded")
    given = parsed(parser, argv, editions=["mini"], split="val", system="naive-bayes")
    workspace, table = Workspace(data=given.data), Table("losses", "edition, relation", given.figures)
    recipe = read_recipe(workspace, given.system)
    for name in given.editions:
        edition = workspace.edition(name)
        run = Run(workspace=workspace, edition=edition, offline=True)
        examples = workspace.examples(edition, given.split)
        sets = proposed(run, recipe, examples)
        tasks = tasks_of(TuningSet(sets, examples, edition, run.relations, recipe.select, TuningOptions()))
        found = {relation: losses(task.outcomes) for relation, task in tasks.items()}
        means = {column: fmean(one[column] for one in found.values()) for column in next(iter(found.values()))}
        for relation, figures in {**found, "mean": means}.items():
            table.add(f"{name}, {relation}", {column: f"{value:.3f}" for column, value in figures.items()})


def losses(outcomes: Outcomes) -> dict[str, float]:
    """Return the mean F1 of a relation's queries by each choice of gold, and by the system's own rule."""
    made = outcomes.selector.select_all(outcomes.sets)
    own, best, gold = outcomes.f1_of(made), outcomes.prefix_f1, outcomes.gold
    right = np.array([len(set(chain.from_iterable(one.matches))) for one in outcomes.matched])
    pool = np.where(gold == 0, 1.0, 2 * right / np.maximum(right + gold, 1))
    kept = np.where([bool(one.objects) for one in made], own, best[:, min(1, best.shape[1] - 1)])
    none = np.where(outcomes.empty, 1.0, kept)
    figures = {"pool": pool, "order": best.max(axis=1), "none": none, "F1": own}
    return {column: float(values.mean()) for column, values in figures.items()}
