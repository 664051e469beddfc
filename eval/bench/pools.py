"""Choice of the evidence in the calibration of pooled models, on pools that no document shows as a result.

    python eval/bench/pools.py [POOL ...] [--data DIR] [--partitions N] [--seed N] [--way WAY ...] [--figures FILE]
    python eval/bench/pools.py --shown [--partitions N] [--figures FILE]

Each cell is official macro-F1 out of fold by exact sweeps: the mean of several partitions into folds, with the standard
deviation. A pool has two sources, or those two with a third. Sources are recorded answers of 2023, systems fitted on
train alone, and simulated ones of known quality, which are drawn anew for each partition. The last lines show the mean
over pools. They also show its difference to the last way with the standard error over pools. Finally, they show the
mean gain from a third source, and the least gain with its standard error over partitions.

Ways, the simplest first. "mean": calibration of the mean over models, as for one model. "isotonic": an increasing step
function of that mean. "each model": proposal and score of each model. Then: whether another model agrees; the earlier
evidence; and the simplest family, as for one model. --shown measures the recorded answers of 2026, which are never used
for a choice, with the engine's own way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache, cached_property
from statistics import fmean
from typing import Any
from unittest import mock

import figures
import numpy as np
from pool_tables import compared, show, table_of
from pool_ways import WAYS, Monotone
from recorded import BERT, GEMMA, GPT4, GPT35, QWEN, RECODE, context_of, row_parser
from simulated import SIMULATED, simulated

from lmkbc.cli.terminal import error_status
from lmkbc.edition import Edition
from lmkbc.pipeline import propose
from lmkbc.recipe import read_recipe
from lmkbc.select.expected_f1 import Calibrated
from lmkbc.select.pool import Pool
from lmkbc.select.ranking import Floats, Ints, Mask
from lmkbc.select.rule import PerRelation, Rule
from lmkbc.tune import nested
from lmkbc.tune.defaults import FOLDS
from lmkbc.tune.families import CalibrationData, Task, fit, general
from lmkbc.tune.nested import Settings, by_subject, choose, fold_of
from lmkbc.tune.outcomes import Outcomes
from lmkbc.tune.tune import INNER_FOLDS
from lmkbc.types import CandidateSet, Example
from lmkbc.workspace import Workspace

LAST = "before"


@dataclass(frozen=True)
class Sources:
    """Sources of an edition's held-out split, each with its sets in the order of the examples.

    train: rows whose objects the simulated sources name by mistake.
    """

    edition: Edition
    examples: Sequence[Example]
    relations: Mapping[str, Any]
    sets: Mapping[str, Sequence[CandidateSet]]
    train: Sequence[Example]

    def pool(self, *names: str, seed: int = 0) -> Pooled:
        """Return the pool of some of them, or of simulated ones. seed: of the simulation."""
        groups = [
            simulated(name, self.train, self.examples, seed=seed) if name in SIMULATED else self.sets[name]
            for name in names
        ]
        return Pooled(self.edition, self.examples, self.relations, Pool(self.edition).merge(groups))

    def f1s(self, names: Sequence[str], seeds: Sequence[int], ways: Sequence[str]) -> dict[str, list[float]]:
        """Return way -> official F1 out of fold in each partition, with simulated sources drawn anew for each."""
        fixed = self.pool(*names) if SIMULATED.keys().isdisjoint(names) else None
        made: dict[str, list[float]] = {way: [] for way in ways}
        for seed in seeds:
            pool = fixed or self.pool(*names, seed=seed)
            for way in ways:
                made[way] += pool.f1s([seed], way)
        return made


class Remembered(Task):
    """A task that caches F1 of rules, except of calibrations: all others are the same in every way."""

    def held_out(self, rows: Mask, inner: Ints, fit: Callable[[Mask, int], Rule]) -> Floats:
        """Return F1 of each query by the rule fitted to the other inner folds."""
        f1 = np.zeros(len(rows))
        for number in np.unique(inner[rows]):
            held = rows & (inner == number)
            f1[held] = self.f1(fit(rows & (inner != number), int(number)))[held]
        return f1[rows]

    def f1(self, rule: Rule) -> Floats:
        """Return F1 of each query under a rule."""
        calibrated = isinstance(rule, Calibrated | Monotone)
        return self.outcomes.f1(rule) if calibrated else self.outcomes.cached_f1(rule)


@dataclass(frozen=True)
class Pooled:
    """Pooled candidates of an edition's examples, in their order."""

    edition: Edition
    examples: Sequence[Example]
    relations: Mapping[str, Any]
    sets: Sequence[CandidateSet]

    @cached_property
    def tasks(self) -> dict[str, Task]:
        """Return the tuning tasks by relation."""
        made: dict[str, Task] = {}
        for name, relation in self.relations.items():
            pairs = [
                pair
                for pair in zip(self.sets, self.examples, strict=True)
                if pair[0].query.relation == name and not pair[0].failed
            ]
            sets, examples = zip(*pairs, strict=True)
            outcomes = Outcomes(sets, examples, self.edition, numeric=relation.kind == "number")
            nullable = relation.nullable(self.edition.name) or bool(outcomes.empty.any())
            made[name] = Remembered(name, outcomes, nullable)
        return made

    @cached_property
    def fitted(self) -> Callable[..., Rule]:
        """Return `families.fit` with a cache of all rules except calibrations."""
        known: dict[tuple[str, str, bytes], Rule] = {}

        def fitted(task: Task, family: str, rows: Mask) -> Rule:
            if family == Calibrated.name:
                return fit(task, family, rows)
            key = task.relation, family, rows.tobytes()
            if key not in known:
                known[key] = fit(task, family, rows)
            return known[key]

        return fitted

    def f1(self, folds: int, seed: int) -> float:
        """Return official F1 out of fold. Failed queries are wrong."""
        inner = self._fold(INNER_FOLDS, seed + 1)
        made = {name: np.zeros(len(task.outcomes)) for name, task in self.tasks.items()}
        with mock.patch.object(nested, "fit", self.fitted):
            for rows in self._parts(folds, seed):
                for name, rule in choose(self.tasks, {}, rows, inner, Settings()).best.items():
                    made[name][~rows[name]] = self.tasks[name].outcomes.f1(rule)[~rows[name]]
        return self._averaged(made)

    def f1s(self, seeds: Sequence[int], way: str = "") -> list[float]:
        """Return official F1 out of fold of each partition. way: name of a way, "" for the engine's own."""
        with WAYS[way].taken(way) if way else nullcontext():
            return [self.f1(FOLDS, seed) for seed in seeds]

    def out_of_fold(
        self, relation: str, fitted: Callable[[Task, Mask], Rule], seeds: Sequence[int], folds: int = FOLDS
    ) -> list[float]:
        """Return a relation's F1 of each partition, by a rule that is fitted to the other folds."""
        scores = []
        for seed in seeds:
            f1 = np.zeros(len(self.tasks[relation].outcomes))
            for rows in self._parts(folds, seed):
                prior = general([CalibrationData.of(task.outcomes, rows[name]) for name, task in self.tasks.items()])
                rule = fitted(replace(self.tasks[relation], prior=prior), rows[relation])
                f1[~rows[relation]] = self.tasks[relation].outcomes.f1(rule)[~rows[relation]]
            scores.append(float(f1.mean()))
        return scores

    def f1_of(self, relation: str, select: PerRelation) -> float:
        """Return a relation's F1 by rules without tuning."""
        task = self.tasks[relation]
        return float(task.outcomes.f1(select.rules.get(relation, select.general)).mean())

    def _fold(self, folds: int, seed: int) -> dict[str, Ints]:
        dealt = by_subject(self.examples, folds, seed)
        return {name: fold_of(task.outcomes.examples, dealt) for name, task in self.tasks.items()}

    def _parts(self, folds: int, seed: int) -> Iterator[dict[str, Mask]]:
        """Yield the training rows of each fold."""
        dealt = self._fold(folds, seed)
        return ({name: own != number for name, own in dealt.items()} for number in range(folds))

    def _averaged(self, f1: Mapping[str, Floats]) -> float:
        total = {name: sum(one.query.relation == name for one in self.examples) for name in f1}
        if self.edition.metric.average == "relation":
            return fmean(own.sum() / total[name] for name, own in f1.items())
        return float(sum(own.sum() for own in f1.values()) / sum(total.values()))


@dataclass(frozen=True)
class Bench:
    """The pools of this machine's data."""

    workspace: Workspace

    @cache  # noqa: B019
    def sources(self, edition: str) -> Sources:
        """Return the sources of an edition."""
        own = self.workspace.edition(edition)
        run = context_of(self.workspace, own)
        examples = list({one.query: one for one in self.workspace.examples(own, own.held_out)}.values())
        sets = Sets(self.workspace, own, examples)
        return Sources(own, examples, run.relations, sets, self.workspace.examples(own, "train"))

    def recorded(self, edition: str, files: Sequence[str]) -> Pooled:
        """Return pooled recorded answers, with all their draws."""
        own = self.workspace.edition(edition)
        run, examples = context_of(self.workspace, own, files), self.workspace.examples(own, own.held_out)
        sets = propose(run, read_recipe(self.workspace, "recorded"), [one.query for one in examples]).sets
        return Pooled(own, examples, run.relations, sets)


class Sets(dict[str, Sequence[CandidateSet]]):
    """Sets by source: a system's name, or a file of recorded answers; computed on first use."""

    def __init__(self, workspace: Workspace, edition: Edition, examples: Sequence[Example]) -> None:
        super().__init__()
        self.workspace, self.edition, self.examples = workspace, edition, examples

    def __missing__(self, name: str) -> Sequence[CandidateSet]:
        files = (name,) if name.endswith(".gz") else ()
        run = context_of(self.workspace, self.edition, files)
        run = run if files else replace(run, search_table=None)
        recipe = read_recipe(self.workspace, "recorded" if files else name)
        sets = propose(run, recipe, [one.query for one in self.examples]).sets
        self[name] = [replace(one, draws=one.draws[:1]) for one in sets]
        return self[name]


THIRD = ("useless", "correlated", "better")
POOLS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "2023, GPT-4 and GPT-3.5": ("2023", (GPT4, GPT35)),
    "2023, GPT-4 and GPT-3.5 + BERT": ("2023", (GPT4, GPT35, RECODE)),
    **{
        f"{edition}, simulated{third and f' + {third}'}": (edition, ("good", "fair", *filter(None, [third])))
        for edition in ("2025", "2022")
        for third in ("", *THIRD)
    },
    **{
        f"{edition}, of train{third and f' + {third}'}": (edition, ("embedded", "naive-bayes", *filter(None, [third])))
        for edition in ("mini", "2024", "2025", "2026", "2022")
        for third in ("", "prior")
    },
    "2023, BERT and BERT with recode": ("2023", (RECODE, BERT)),
}
"""Pools for the choice: two sources, and these with a third one."""
SHOWN = {"Qwen": (QWEN,), "Gemma": (GEMMA,), "Qwen and Gemma": (QWEN, GEMMA)}
"""Recorded answers of 2026, which are never used for a choice."""


def main(argv: Sequence[str] | None = None) -> None:
    parser = row_parser(__doc__, POOLS)
    parser.add_argument("--partitions", type=int, default=10)
    parser.add_argument("--way", nargs="+", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--shown", action="store_true", help="measure the answers of 2026 with the engine's own way")
    given = parser.parse_args(argv)
    bench, seeds = Bench(Workspace(data=given.data)), range(given.seed, given.seed + given.partitions)
    if given.shown:
        pools = {name: bench.recorded("2026", files) for name, files in SHOWN.items()}
        made = {
            name: {way or "out of fold": pool.f1s(seeds, way) for way in ("", LAST)} for name, pool in pools.items()
        }
        show(made)
        figures.record(given.figures, "pools-2026", table_of(made))
        return
    made = {}
    for name in given.rows or POOLS:
        edition, names = POOLS[name]
        made[name] = bench.sources(edition).f1s(names, seeds, given.way)
        show({name: made[name]}, head=len(made) == 1)
        figures.record(given.figures, "pools", table_of(made) | compared(made))
    for name, row in compared(made).items():
        print(f"{name:40}" + "".join(f"{cell:>18}" for cell in row.values()))


if __name__ == "__main__":
    with error_status():
        main()
