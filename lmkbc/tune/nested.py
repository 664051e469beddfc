"""Which rule for which relation: inner cross-validation, a shared default, and what it takes to leave it.

Where candidates were verified, also whether the verdicts count: chosen by the same held-out F1, per relation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lmkbc.select.cutoffs import TopK
from lmkbc.select.ranking import Floats, Ints, Mask
from lmkbc.select.rule import Rule
from lmkbc.select.verified import Combine, Verified
from lmkbc.tune.calibrate import Lesson, Weights, general
from lmkbc.tune.families import FAMILIES, Task, applicable
from lmkbc.tune.search import search, searched_rules

UNFITTED = TopK(k=1)
"""What answers where there is no training row at all: the best candidate."""
SEARCH = "search"
WAYS: tuple[Combine, ...] = ("veto", "product")
"""How verdicts may count; few, since each is one more chance to be best by luck."""
MARGIN = 2.5
"""Standard errors by which a relation's own family must beat the shared one: 5 % over eight families (Bonferroni)."""


@dataclass(frozen=True)
class Settings:
    """How to choose: the rules allowed (None: all), Optuna trials per study, seed, and where studies live."""

    rules: Sequence[str] | None = None
    trials: int = 0
    seed: int = 0
    storage: Any = None
    study: str = "lmkbc"

    def part(self, name: str) -> Settings:
        """The same settings for one part of the work, with studies of its own."""
        return replace(self, study=f"{self.study}-{name}")


@dataclass
class Compared:
    """What inner cross-validation found for one relation: held-out F1 of each family on the training rows."""

    held_out: dict[str, Floats] = field(default_factory=dict)
    searched: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True)
class Chosen:
    """The rule for a relation, and the held-out F1 on the training rows of the family that it is of."""

    rule: Rule
    held_out: float


def fit(task: Task, family: str, rows: Mask) -> Rule:
    """A family's rule fitted to some queries; the best candidate where there are none."""
    return FAMILIES[family](task, rows) if rows.any() else UNFITTED


def choose(
    tasks: Mapping[str, Task], judged: Mapping[Combine, Mapping[str, Task]], rows: Mapping[str, Mask],
    inner: Mapping[str, Ints], how: Settings,
) -> dict[str, Rule]:  # fmt: skip
    """A rule per relation, chosen on the given rows only.

    tasks: on candidates as they are. judged: on what each way to heed their verdicts makes of them; a relation takes
    a way whose held-out F1 is higher.
    """
    plain = _choose(tasks, rows, inner, how)
    heeded = {way: _choose(others, rows, inner, how.part(way)) for way, others in judged.items()}
    rules = {}
    for name, chosen in plain.items():
        best, rules[name] = chosen.held_out, chosen.rule
        for way, made in heeded.items():
            if made[name].held_out > best + 1e-9:
                best, rules[name] = made[name].held_out, Verified(inner=made[name].rule, combine=way)
    return rules


def _choose(
    tasks: Mapping[str, Task], rows: Mapping[str, Mask], inner: Mapping[str, Ints], how: Settings
) -> dict[str, Chosen]:
    """A rule per relation, all on candidates of one kind.

    All relations whose answers must be exact share the family that is best over all of them, and so do those that ask
    for a number within a tolerance; a relation leaves it for the simplest family whose held-out F1 there is clearly
    better (`MARGIN` standard errors of the difference).
    """
    folds = sorted({int(fold) for name in tasks for fold in np.unique(inner[name][rows[name]])})
    priors = {fold: _general(tasks, {name: rows[name] & (inner[name] != fold) for name in tasks}) for fold in folds}
    overall = _general(tasks, rows)
    tasks = {name: replace(task, prior=overall) for name, task in tasks.items()}
    compared = {name: _compare(task, rows[name], inner[name], priors, how) for name, task in tasks.items()}
    chosen = {}
    for name, task in tasks.items():
        default = shared_family([compared[one] for one in tasks if tasks[one].approximate == task.approximate])
        family = _family(compared[name], default)
        searched, held_out = compared[name].searched, _mean(compared[name].held_out[family])
        rule = best_of(task, searched, rows[name]) if family == SEARCH else fit(task, family, rows[name])
        chosen[name] = Chosen(rule, held_out)
    return chosen


def _general(tasks: Mapping[str, Task], rows: Mapping[str, Mask]) -> Weights:
    return general([Lesson.of(task.outcomes, rows[name]) for name, task in tasks.items() if rows[name].any()])


def _compare(task: Task, rows: Mask, inner: Ints, priors: Mapping[int, Weights], how: Settings) -> Compared:
    result = Compared()
    folds = np.unique(inner[rows])
    for family in applicable(task, how.rules):
        f1 = np.zeros(len(rows))
        for fold in folds:
            held = rows & (inner == fold)
            rule = fit(replace(task, prior=priors[int(fold)]), family, rows & (inner != fold))
            f1[held] = task.outcomes.f1(rule)[held]
        result.held_out[family] = f1[rows]
    names = searched_rules(task, how.rules)
    if how.trials and names and rows.any():
        study = f"{how.study}-{task.relation}"
        result.searched = search(task, rows, names, trials=how.trials, seed=how.seed, name=study, storage=how.storage)
        result.held_out[SEARCH] = _cross_selected(task, result.searched, rows, inner)
    return result


def _cross_selected(task: Task, rules: Sequence[Rule], rows: Mask, inner: Ints) -> Floats:
    """Held-out F1 of picking the best of some rules: each fold by the rule that is best on the other folds."""
    table = np.array([task.outcomes.f1(rule) for rule in rules])
    f1 = np.zeros(len(rows))
    for fold in np.unique(inner[rows]):
        held = rows & (inner == fold)
        f1[held] = table[_first_best(table[:, rows & (inner != fold)].sum(axis=1))][held]
    return f1[rows]


def best_of(task: Task, rules: Sequence[Rule], rows: Mask) -> Rule:
    """The rule with the highest F1 on some rows, the earliest on a tie, so that the exact sweep's stands."""
    return rules[_first_best(np.array([task.outcomes.f1(rule)[rows].sum() for rule in rules]))]


def _first_best(totals: Floats) -> int:
    return int(np.argmax(totals >= totals.max() - 1e-9))


def shared_family(compared: Sequence[Compared]) -> str:
    """The simplest family whose mean over relations is within one standard error of the best one's."""
    common = [name for name in FAMILIES if all(name in result.held_out for result in compared)]
    means = {name: float(np.mean([_mean(result.held_out[name]) for result in compared])) for name in common}
    best = max(common, key=lambda name: means[name])
    for name in common:
        errors = [_standard_error(result.held_out[best] - result.held_out[name]) for result in compared]
        if means[best] - means[name] <= np.sqrt(np.sum(np.square(errors))) / len(compared):
            return name
    return best


def _family(compared: Compared, default: str) -> str:
    for name, f1 in compared.held_out.items():
        gain = f1 - compared.held_out[default]
        if _mean(gain) > MARGIN * _standard_error(gain) > 0:
            return name
    return default


def _mean(values: Floats) -> float:
    return float(values.mean()) if values.size else 0.0


def _standard_error(values: Floats) -> float:
    return float(values.std() / np.sqrt(values.size)) if values.size else 0.0
