"""Choice of a rule per relation: inner cross-validation, a shared default, and the gain required to leave it.

A tuned rule must beat the recipe's own rule. Where rules tie, nothing tested the scores in which they differ: the own
rule is surest, or the empty answer if most gold is empty and no candidate is right.

Optuna's result is one more family. If candidates were verified, the same held-out F1 decides per relation whether
verification scores count.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist

import numpy as np

from lmkbc.select.calibration import at_least
from lmkbc.select.composed import Combine, Verified
from lmkbc.select.cutoffs import Cutoff
from lmkbc.select.ranking import Floats, Ints, Mask
from lmkbc.select.rule import Rule
from lmkbc.tune.calibrate import CalibrationData, Weights, general
from lmkbc.tune.families import Task, applicable, fit
from lmkbc.tune.outcomes import TIE
from lmkbc.tune.studies import Joint, search
from lmkbc.tune.tuning_set import UNSCORED, TuningOptions
from lmkbc.types import Example


def by_subject(examples: Sequence[Example], folds: int, seed: int) -> dict[str, int]:
    """Return subject -> fold, over all relations: a seeded shuffle, stratified by relation and by empty gold.

    A subject of several relations belongs to the stratum of its first one.
    """
    strata: dict[str, tuple[str, bool]] = {}
    for example in examples:
        strata.setdefault(example.query.subject, (example.query.relation, bool(example.objects)))
    subjects = sorted(strata)
    random.Random(seed).shuffle(subjects)
    subjects.sort(key=strata.__getitem__)
    return {subject: position % folds for position, subject in enumerate(subjects)}


def fold_of(examples: Iterable[Example], folds: dict[str, int]) -> Ints:
    """Return the fold of each example, (n,); `UNSCORED` for an example whose subject is in none."""
    return np.array([folds.get(example.query.subject, UNSCORED) for example in examples], dtype=np.int64)


SEARCH = "search"
WAYS: tuple[Combine, ...] = ("veto", "product")
"""Uses of verification scores that are tried; few, since each is one more chance to be best by luck."""
MARGIN = 2.5
"""Standard errors by which a family must beat the shared one: 5 % over eight families (Bonferroni)."""
LEAD = 1.0
"""Standard errors by which a tuned rule must beat the recipe's own (chosen by `python -m eval.bench few`)."""
NOISE = 0.5
"""Squared error of one more row of a relation, which is added: a few rows may gain alike by chance."""
RISK = 0.05
"""Level of the test for Optuna's rules, over the families and all trials, since each may be best by luck."""


@dataclass(frozen=True)
class Compared:
    """Results of inner cross-validation for a relation: family -> held-out F1 on the training rows.

    tried: the same for everything that Optuna tried.
    """

    held_out: Mapping[str, Floats]
    tried: Mapping[Joint, Floats] = field(default_factory=dict)


FEWEST = 6
"""Fewest labelled rows that can show that most gold is empty, if all of theirs is (`at_least`)."""
OWN = "by the recipe's own rule, since no tuned one is clearly better"
TOO_FEW = f"by the recipe's own rule, since fewer than {FEWEST} labelled rows are answered"
NOTHING = Cutoff(threshold=2.0)
"""Rule that keeps nothing, whatever the scores."""
EMPTY = "nothing is kept: most gold is empty, and no candidate is right"
UNREAD = "not tuned: no answer was read"
"""Reasons for a rule that is not tuned."""


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """The rule for a relation, and its held-out F1 of each training row, (n,).

    most: maximum number of objects of an answer; None for no limit. reason: why the rule is not tuned; "" if it is.
    """

    rule: Rule
    held_out: Floats
    most: int | None = None
    reason: str = ""


def choose(
    tasks: Mapping[str, Task],
    judged: Mapping[Combine, Mapping[str, Task]],
    rows: Mapping[str, Mask],
    inner: Mapping[str, Ints],
    options: TuningOptions,
    step: Callable[[], None] = lambda: None,
) -> dict[str, Chosen]:
    """Return a rule per relation, chosen on the given rows only.

    tasks: on unchanged candidates.
    judged: tasks for each way in which verification scores change scores. A relation uses these candidates if its
    held-out F1 is higher.
    step: called after each relation of each kind of candidates.
    """
    best = _choose(tasks, rows, inner, options, step)
    for way, others in judged.items():
        for name, one in _choose(others, rows, inner, options, step).items():
            is_verified = (tasks[name].outcomes.ranking.verifications >= 0).any()
            if is_verified and _mean(one.held_out - best[name].held_out) > TIE:
                best[name] = replace(one, rule=Verified(inner=one.rule, combine=way))
    return _surest(tasks, rows, best)


def _surest(tasks: Mapping[str, Task], rows: Mapping[str, Mask], tuned: Mapping[str, Chosen]) -> dict[str, Chosen]:
    """Return the tuned rule of each relation if it leads before the recipe's own rule (see `leads`), else the latter.

    If no candidate is right, no rule was tested: return the one that keeps nothing if a lower bound of the share of
    empty gold is above one half. Fewer than `FEWEST` rows cannot show that, and no other rule is tuned on them.
    """
    own = {
        name: _best(
            [
                Chosen(one.own, one.own_f1[rows[name]], one.most, OWN if rows[name].sum() >= FEWEST else TOO_FEW)
                for one in task.variants
            ]
        )
        for name, task in tasks.items()
        if task.own_f1.size
    }
    made, gains = dict(tuned), [tuned[name].held_out - one.held_out for name, one in own.items()]
    untested = {name for name, task in tasks.items() if not task.outcomes.gains[rows[name]].any()}
    made |= {
        name: own[name]
        for name, ahead in zip(own, leads(gains) if own else [], strict=True)
        if not ahead or (name in untested and rows[name].sum() < FEWEST)
    }
    for name, outcomes in ((name, tasks[name].outcomes) for name in untested):
        if at_least(outcomes.empty[rows[name]].sum(), rows[name].sum()) > 0.5:
            made[name] = Chosen(NOTHING, outcomes.prefix_f1[rows[name], 0], reason=EMPTY)
    return made


def leads(gains: Sequence[Floats]) -> list[bool]:
    """Return whether each relation gains, by its rows and by those of the other relations.

    gains: difference in F1 of each row of each relation, at least one relation.

    The mean of a relation is shrunk to that of all relations, as far as these are alike (DerSimonian and Laird 1986).
    It must exceed `LEAD` standard errors. One row is never held out, so it shows no gain.
    """
    rows = np.array([max(gain.size, TIE) for gain in gains])
    mean = np.array([_mean(gain) for gain in gains])
    errors = np.array([_standard_error(gain) for gain in gains])
    variance = ((rows * errors) ** 2 + NOISE) / (rows + 1) / rows
    weight = 1 / variance
    excess = weight @ (mean - weight @ mean / weight.sum()) ** 2 - (len(gains) - 1)
    between = max(excess / max(weight.sum() - weight @ weight / weight.sum(), TIE), 0.0)
    weight = 1 / (variance + between)
    trust = between * weight
    shrunk = trust * mean + (1 - trust) * (weight @ mean / weight.sum())
    error = np.sqrt(trust * variance + (1 - trust) ** 2 / weight.sum())
    return list((np.minimum(shrunk - LEAD * error, mean) > TIE) & (rows > 1))


def _best(choices: Sequence[Chosen]) -> Chosen:
    """Return the choice with the highest held-out F1, the first on a tie."""
    return choices[_first_best(np.array([one.held_out.sum() for one in choices]))]


def _choose(
    tasks: Mapping[str, Task],
    rows: Mapping[str, Mask],
    inner: Mapping[str, Ints],
    options: TuningOptions,
    step: Callable[[], None],
) -> dict[str, Chosen]:
    """Return a rule per relation on candidates of one kind.

    Relations with exact answers share the family that is best over all of them; so do relations with a numeric
    tolerance. A relation leaves the shared family for the simplest family whose held-out F1 is clearly better (by
    `MARGIN` standard errors of the difference).
    """
    folds = sorted({int(fold) for name in tasks for fold in np.unique(inner[name][rows[name]])})
    priors = {fold: _general(tasks, {name: rows[name] & (inner[name] != fold) for name in tasks}) for fold in folds}
    overall = _general(tasks, rows)
    tasks = {name: replace(task, prior=overall) for name, task in tasks.items()}
    compared = {}
    for name, task in tasks.items():
        compared[name] = _compare(task, rows[name], inner[name], priors, options)
        step()
    chosen = {}
    for name, task in tasks.items():
        alike = [compared[other] for other in tasks if tasks[other].approximate == task.approximate]
        family = _family(compared[name], shared_family(alike))
        if family == SEARCH:
            joint = best_of(compared[name].tried)
            chosen[name] = Chosen(joint.fit(joint.steps(task), rows[name]), compared[name].held_out[family])
            continue
        chosen[name] = _best(
            [
                Chosen(fit(one, family, rows[name]), _held_out(one, family, rows[name], inner[name], priors), one.most)
                for one in task.variants
            ]
        )
    return chosen


def _general(tasks: Mapping[str, Task], rows: Mapping[str, Mask]) -> Weights:
    return general([CalibrationData.of(task.outcomes, rows[name]) for name, task in tasks.items() if rows[name].any()])


def _compare(task: Task, rows: Mask, inner: Ints, priors: Mapping[int, Weights], options: TuningOptions) -> Compared:
    held_out = {family: _held_out(task, family, rows, inner, priors) for family in applicable(task, options.rules)}
    tried = search(task, rows, inner, options) if options.trials and rows.any() else {}
    if tried:
        held_out[SEARCH] = _cross_selected(np.array(list(tried.values())), inner[rows])
    return Compared(held_out, tried)


def _held_out(task: Task, family: str, rows: Mask, inner: Ints, priors: Mapping[int, Weights]) -> Floats:
    """Return the F1 of each query in `rows`, by a family's rule fitted to the other inner folds."""
    return task.held_out(rows, inner, lambda others, fold: fit(replace(task, prior=priors[fold]), family, others))


def _cross_selected(table: Floats, inner: Ints) -> Floats:
    """Return held-out F1 when each fold uses what is best on the other folds: (t, n) -> (n,).

    table: F1 of each trial.
    """
    f1 = np.zeros(table.shape[1])
    for fold in np.unique(inner):
        held = inner == fold
        f1[held] = table[_first_best(table[:, ~held].sum(axis=1))][held]
    return f1


def best_of(tried: Mapping[Joint, Floats]) -> Joint:
    """Return the choice with the highest held-out F1; on a tie the earliest, so that Optuna's must beat the sweeps'."""
    return list(tried)[_first_best(np.array([f1.sum() for f1 in tried.values()]))]


def _first_best(totals: Floats) -> int:
    return int(np.argmax(totals >= totals.max() - TIE))


def shared_family(compared: Sequence[Compared]) -> str:
    """Return the family with the highest mean over relations; on a tie, the simplest."""
    common = [name for name in compared[0].held_out if all(name in result.held_out for result in compared)]
    common = [name for name in common if name != SEARCH]
    means = {name: float(np.mean([_mean(result.held_out[name]) for result in compared])) for name in common}
    return next(name for name in common if means[name] >= max(means.values()) - TIE)


def _family(compared: Compared, default: str) -> str:
    for name, f1 in compared.held_out.items():
        gain = f1 - compared.held_out[default]
        chances = len(compared.held_out) + len(compared.tried)
        margin = NormalDist().inv_cdf(1 - RISK / chances) if name == SEARCH else MARGIN
        if _mean(gain) > margin * _standard_error(gain) > 0:
            return name
    return default


def _mean(values: Floats) -> float:
    return float(values.mean()) if values.size else 0.0


def _standard_error(values: Floats) -> float:
    return float(values.std() / np.sqrt(values.size)) if values.size else 0.0
