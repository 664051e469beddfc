"""Tuning on few labelled rows of recorded answers: calibration and F1 on the rows that were not tuned on.

Each line is for a size: so many rows of each relation (at most three quarters), drawn at random several times. What
tuning learns from them is scored on the other rows. Beside official macro-F1 is that of the recipe's own rules. Beside
the Brier score and the expected calibration error of confidences are those of untuned confidences. "Worst loss" is of
the relation that loses most by tuning, on the mean over the draws. "Above 0.95" is the share of candidates with such a
confidence.

No model's answers to train are recorded: the answers are of the held-out splits. Settings were chosen by those of 2022
to 2025; those of 2026 were looked at, too.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from eval.bench import parsed
from eval.bench.figures import Table
from eval.bench.recorded import ROWS, Row, opened, proposed, row_parser
from lmkbc.select.ranking import Floats, Mask
from lmkbc.tune.choice import by_subject, choose, fold_of
from lmkbc.tune.confidence import as_it_is, calibrated
from lmkbc.tune.families import Task
from lmkbc.tune.learn import INNER_FOLDS, tasks_of
from lmkbc.tune.reliability import equal_width
from lmkbc.tune.tuning_set import TuningOptions, TuningSet
from lmkbc.types import grouped
from lmkbc.workspace import Workspace

SIZES = (5, 10, 20, 50, 100)
SHARE = 0.75
"""Greatest share of a relation's rows that are tuned on."""
SURE = 0.95
ANSWERS = {name: ROWS[name] for name in ("GPT-3", "GPT-4", "GPT-3.5", "BERT-recode", "Qwen", "Qwen+Gemma")} | {
    "embedded": Row("2025 val, embedded", "2025", (), None, "embedded")
}


class Figures(NamedTuple):
    """Figures of one draw, on the other rows. f1: relation -> F1 untuned and tuned. brier, ece, sure: of both."""

    f1: Mapping[str, tuple[float, float]]
    brier: tuple[float, float]
    ece: tuple[float, float]
    sure: tuple[float, float]


def main(argv: Sequence[str]) -> None:
    parser = row_parser(__doc__, *ANSWERS, figures=True)
    parser.add_argument("--limit", type=int, help="queries of a split, about so many, evenly spaced")
    parser.add_argument("--draws", type=int, default=20, help="times that rows are drawn")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="rows of each relation")
    given = parsed(parser, argv, rows=["Qwen"], limit=60, draws=2, sizes=[3])
    workspace, table = Workspace(data=given.data), Table("few", "answers, rows a relation", given.figures)
    for row in map(ANSWERS.__getitem__, given.rows):
        edition, examples, run, recipe = opened(workspace, row, given.limit)
        sets, how = proposed(run, recipe, examples), TuningOptions(trials=0, seed=given.seed)
        data = TuningSet(sets, examples, edition, run.relations, recipe.select, how).answered
        tasks = tasks_of(data, own=recipe.select.select_all(data.sets))
        for size in given.sizes:
            with threadpool_limits(1):
                made = [measured(tasks, size, how, seed) for seed in range(given.seed, given.seed + given.draws)]
            table.add(f"{row.label}, {size}", shown(made))


def measured(tasks: Mapping[str, Task], size: int, how: TuningOptions, seed: int) -> Figures:
    """Return the figures of one draw of rows."""
    rows = {name: drawn(len(task.outcomes), size, f"{seed}, {name}") for name, task in tasks.items()}
    examples = [
        tasks[name].outcomes.examples[row] for name, mask in rows.items() for row in np.flatnonzero(mask).tolist()
    ]
    tasks = {name: of_rows(task, rows[name]) for name, task in tasks.items()}
    folds = {example.query.subject: 0 for task in tasks.values() for example in task.outcomes.examples}
    folds |= by_subject(examples, INNER_FOLDS, how.seed + 1)
    inner = {name: fold_of(task.outcomes.examples, folds) for name, task in tasks.items()}
    chosen, (calibrations, _) = choose(tasks, {}, rows, inner, how), calibrated(tasks, rows, inner)
    f1, columns = {}, []
    for name, task in tasks.items():
        rest, one = ~rows[name], task.variants[-1] if chosen[name].most else task
        tuned = one.own_f1 if chosen[name].rule == task.own else one.outcomes.f1(chosen[name].rule)
        f1[name] = float(task.own_f1[rest].mean()), float(tuned[rest].mean())
        real = (task.outcomes.ranking.scores >= 0) & rest[:, None]
        ways = as_it_is(task), calibrations[name]
        p = [way.probabilities(task.outcomes.ranking)[real] for way in ways]
        columns.append([*p, np.minimum(task.outcomes.gains[real], 1).astype(float)])
    *ways_p, right = (np.concatenate(column) for column in zip(*columns, strict=True))
    both = [reliability(p, right) for p in ways_p]
    return Figures(f1, *zip(*both, strict=True))


def drawn(rows: int, size: int, seed: str) -> Mask:
    """Return so many rows, drawn at random, (rows,); at most a share of them."""
    mask = np.zeros(rows, dtype=np.bool_)
    mask[random.Random(seed).sample(range(rows), min(size, int(rows * SHARE)))] = True
    return mask


def of_rows(task: Task, rows: Mask) -> Task:
    """Return the task of someone who knows the gold of these rows alone: whether an answer may be empty."""
    nullable = task.nullable and bool(task.outcomes.empty[rows].any())
    return replace(task, nullable=nullable, capped=task.capped and replace(task.capped, nullable=nullable))


def reliability(p: Floats, right: Floats) -> tuple[float, float, float]:
    """Return Brier score, expected calibration error, and the share of sure candidates."""
    gaps = np.bincount(equal_width(p), right - p)
    return float(((p - right) ** 2).mean()), float(np.abs(gaps).sum() / p.size), float((p > SURE).mean())


def shown(made: Sequence[Figures]) -> dict[str, str]:
    """Return the cells of a line: means over draws."""
    gains = grouped((name, tuned - own) for one in made for name, (own, tuned) in one.f1.items())
    means = {name: fmean(values) for name, values in gains.items()}
    worst = min(means, key=lambda name: means[name])
    own, tuned = (fmean(fmean(pair[place] for pair in one.f1.values()) for one in made) for place in range(2))
    cells = {"F1 untuned": f"{own:.3f}", "F1 tuned": f"{tuned:.3f}", "worst loss": f"{max(0.0, -means[worst]):.3f}"}
    for what, pairs in (
        ("Brier", [one.brier for one in made]),
        ("ECE", [one.ece for one in made]),
        (f"above {SURE}", [one.sure for one in made]),
    ):
        for place, when in enumerate(("untuned", "tuned")):
            cells[f"{what} {when}"] = f"{fmean(pair[place] for pair in pairs):.4f}"
    return cells
