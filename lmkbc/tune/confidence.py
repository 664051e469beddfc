"""Confidences: their fit, their quality on held-out subjects, and the precision that they may promise.

All confidences that are measured here, and all thresholds with a measured precision, are out of fold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from lmkbc.select.calibration import PROMISES, SHARE, SUREST, Calibration, PrecisionCurve, Promise
from lmkbc.select.expected_f1 import ExpectedF1
from lmkbc.select.ranking import Floats, Ints, Mask
from lmkbc.select.rule import significant
from lmkbc.select.selector import reading_scores
from lmkbc.tune.calibrate import CalibrationData, candidate_evidence, fit_calibration, general
from lmkbc.tune.families import Task
from lmkbc.tune.outcomes import Outcomes
from lmkbc.tune.reliability import Reliability, interval, resampled
from lmkbc.tune.tuning_set import UNSCORED

STEP = 0.01
"""Step between the precisions of a curve; each step keeps only its lowest threshold."""
FINE = 1e6
"""Confidences are rounded down to a millionth."""


@dataclass(frozen=True, eq=False)
class Facts:
    """Facts that the candidates of a relation state, with descending confidence.

    Repeated answers of a query are left out.

    confidence: (f,).
    right: (f,), number of gold objects that each fact adds to those found by surer facts of its query.
    row: (f,), number of its query.
    gold: (n,), number of gold objects of each query.
    """

    confidence: Floats
    right: Ints
    row: Ints
    gold: Ints

    @classmethod
    def of(
        cls, outcomes: Outcomes, p: Floats, rows: Mask, lost: Sequence[int] = (), max_facts: int | None = None
    ) -> Facts:
        """Return the facts of some queries.

        p: confidences, (n, m). lost: gold objects of each failed query. max_facts: maximum number of facts of a query.
        """
        confidence: list[Floats] = []
        right: list[Ints] = []
        row: list[Ints] = []
        for place, query in enumerate(np.flatnonzero(rows).tolist()):
            scores = p[query, : len(outcomes.matched[query].keys)]
            order = outcomes.answered(query, np.argsort(-scores, kind="stable")[:max_facts].tolist())
            hits, answers = outcomes.counts(query, order)
            new = np.flatnonzero(np.diff(answers))
            confidence.append(np.floor(scores[order][new] * FINE) / FINE)
            right.append(np.diff(hits)[new])
            row.append(np.full(len(new), place))
        joined = np.concatenate(confidence) if confidence else np.zeros(0)
        sure = np.argsort(-joined, kind="stable")
        columns = [np.concatenate(part)[sure] if part else np.zeros(0, dtype=np.int64) for part in (right, row)]
        return cls(joined[sure], columns[0], columns[1], np.concatenate([outcomes.gold[rows], np.array(lost, int)]))

    @cached_property
    def _ends(self) -> Ints:
        """Return the last position of each distinct confidence."""
        return np.flatnonzero(np.diff(self.confidence, append=-1.0))

    @property
    def _most(self) -> Ints:
        """Return for each prefix the number of facts of the query with the most of them."""
        by_row = np.argsort(self.row, kind="stable")
        first = np.searchsorted(self.row[by_row], self.row[by_row])
        counted = np.empty(len(self.row), dtype=np.int64)
        counted[by_row] = np.arange(1, len(self.row) + 1) - first
        return np.maximum.accumulate(counted)[self._ends]

    def prefixes(self) -> tuple[Floats, Ints, Ints]:
        """Return each prefix that a threshold can keep: the threshold, the number of right facts, and the size."""
        ends = self._ends
        return self.confidence[ends], np.cumsum(self.right)[ends], ends + 1

    def recall_at(self, precision: float) -> float:
        """Return the recall of the largest prefix with a precision, chosen on the same facts; 0 if there is none."""
        return float(self.resampled_recall(precision, np.ones((1, len(self.gold)), dtype=np.int64))[0])

    @classmethod
    def together(cls, relations: Sequence[Facts]) -> Facts:
        """Return the facts of several relations as those of one."""
        before = np.cumsum([0, *(len(one.gold) for one in relations)])
        parts = [(one.confidence, one.right, one.row + first) for one, first in zip(relations, before, strict=False)]
        confidence, right, row = (np.concatenate(column) for column in zip(*parts, strict=True))
        sure = np.argsort(-confidence, kind="stable")
        return cls(confidence[sure], right[sure], row[sure], np.concatenate([one.gold for one in relations]))

    def curve(self, promise: Promise, max_facts: int | None = None) -> PrecisionCurve:
        """Return the thresholds with their promised precisions, which ascend in steps of at least `STEP`."""
        points: list[tuple[float, float, float]] = []
        total = max(int(self.gold.sum()), 1)
        columns = [column[::-1].tolist() for column in (*self.prefixes(), self._most)]
        for threshold, right, kept, most in zip(*columns, strict=True):
            promised = int(promise.bound(right, kept, most) / STEP + 1e-9) * STEP
            if promised > (points[-1][1] if points else 0.0) + 1e-9:
                points.append((threshold, significant(promised), significant(min(right / total, 1.0))))
        thresholds, precisions, recalls = zip(*points, strict=True) if points else ((), (), ())
        return PrecisionCurve(threshold=thresholds, precision=precisions, recall=recalls, max=max_facts)

    @staticmethod
    def curves_of(
        facts: Mapping[str, Facts], max_facts: Mapping[str, int | None]
    ) -> dict[str, dict[str, PrecisionCurve]]:
        """Return for each relation a curve of each of `PROMISES`. max_facts: most facts of a query, by relation."""
        every = Facts.together(list(facts.values()))
        shared = {promise: every.curve(kind) for promise, kind in PROMISES.items() if kind.together}
        return {
            name: {
                promise: replace(shared[promise], max=most) if kind.together else facts[name].curve(kind, most)
                for promise, kind in PROMISES.items()
            }
            for name, most in max_facts.items()
        }

    def kept(self, thresholds: Floats) -> tuple[Ints, Ints]:
        """Return the number of facts of each query above its threshold, and the number of right ones, (n,) each."""
        sure, queries = self.confidence >= thresholds[self.row], len(self.gold)
        right = np.bincount(self.row[sure], self.right[sure], queries)
        return np.bincount(self.row[sure], minlength=queries), right.astype(np.int64)

    def resampled_recall(self, precision: float, draws: Ints) -> Floats:
        """Return the recall of the largest prefix with a precision, for each resample of the queries, (resamples,)."""
        ends = self._ends
        made = np.zeros(len(draws))
        for place, times in enumerate(draws):
            drawn = times[self.row]
            right, kept = np.cumsum(drawn * self.right)[ends], np.cumsum(drawn)[ends]
            good = np.flatnonzero((right >= precision * kept - 1e-9) & (kept > 0))
            made[place] = min(right[good[-1]] / max(times @ self.gold, 1), 1.0) if good.size else 0.0
        return made


PROMISED = 0.9
"""Precision at which recall is reported (Veseli et al., EMNLP Findings 2023)."""
NEVER = 2.0
"""Threshold that no confidence reaches."""


def fitted(tasks: Mapping[str, Task], rows: Mapping[str, Mask]) -> dict[str, Calibration]:
    """Return a calibration per relation, fitted on the given rows; a relation without rows gets the general weights."""
    data = {
        name: CalibrationData.of(task.outcomes, rows[name], verdicts=True)
        for name, task in tasks.items()
        if rows[name].any()
    }
    prior = general(list(data.values()))
    unseen = Calibration(weights=prior)
    return {
        name: replace(fit_calibration(data[name], prior), highest=highest(rows[name])) if name in data else unseen
        for name in tasks
    }


def highest(rows: Mask) -> float:
    """Return the highest confidence that some rows allow, by Laplace's rule of succession: all of them may be right."""
    return significant((rows.sum() + 1) / (rows.sum() + 2))


def as_it_is(task: Task, rows: Mask | None = None) -> Calibration:
    """Return the untuned confidence of a relation's candidates, as a calibration.

    rows: the labelled rows; None for no bound. They bound shares, but not probabilities that were learned before.
    """
    if isinstance(reading_scores(task.own), ExpectedF1):
        return Calibration(weights={"score": 1.0})
    return Calibration(weights={SHARE: 1.0}, highest=SUREST if rows is None else highest(rows))


def calibrated(
    tasks: Mapping[str, Task], rows: Mapping[str, Mask], fold: Mapping[str, Ints]
) -> tuple[dict[str, Calibration], dict[str, Floats]]:
    """Return a calibration per relation, made from the given rows, and their confidences out of fold, (n, m).

    It is the fitted one if its Brier score out of fold is better than that of the untuned confidence, else the latter.
    """
    made, confidence = fitted(tasks, rows), held_out(tasks, rows, fold)
    for name, task in tasks.items():
        untuned, plain = np.full(confidence[name].shape, -1.0), as_it_is(task, rows[name])
        untuned[rows[name]] = _probabilities(plain, task.outcomes, rows[name])
        right = np.minimum(task.outcomes.gains, 1)
        scored = confidence[name] >= 0
        errors = [((p - right)[scored] ** 2).sum() for p in (confidence[name], untuned)]
        if errors[0] >= errors[1]:
            made[name], confidence[name] = plain, np.where(scored, untuned, -1.0)
    return made, confidence


def held_out(tasks: Mapping[str, Task], rows: Mapping[str, Mask], fold: Mapping[str, Ints]) -> dict[str, Floats]:
    """Return the confidence of each candidate of some rows, out of fold, (n, m); -1 for padding."""
    made = {name: np.full(task.outcomes.ranking.scores.shape, -1.0) for name, task in tasks.items()}
    for number in _numbers(fold):
        by_others = fitted(tasks, {name: rows[name] & (fold[name] != number) for name in tasks})
        for name, task in tasks.items():
            held = rows[name] & (fold[name] == number)
            made[name][held] = _probabilities(by_others[name], task.outcomes, held)
    return made


def _probabilities(calibration: Calibration, outcomes: Outcomes, rows: Mask) -> Floats:
    """Return `Calibration.probabilities` for some queries, with evidence from the cache."""
    columns = {name: column[rows] for name, column in outcomes.cached(candidate_evidence).items()}
    priors = np.array([calibration.label_priors.get(name, 0.0) for name in outcomes.vocabulary] or [0.0])
    p = calibration.of_evidence(columns, priors[outcomes.names[rows]])
    return np.where(outcomes.ranking.scores[rows] < 0, -1.0, p)


@dataclass(frozen=True, slots=True)
class RelationConfidence:
    """Confidence in a relation's candidates: the calibration, and the curve of each promise.

    recall: out of fold, at precision `PROMISED`, with the best threshold for the same queries.
    """

    calibration: Calibration
    curves: Mapping[str, PrecisionCurve]
    recall: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Facts of all relations that are kept out of fold, by thresholds that promise `PROMISED` on other folds.

    precision: None if nothing is kept.
    interval: 95 % interval of the precision, over subjects.
    relations: relations with kept facts.
    broken: those of them with less precision than promised.
    """

    facts: int
    precision: float | None
    interval: tuple[float, float] | None
    recall: float
    relations: int
    broken: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Confidences:
    """Confidences that tuning learned.

    recall: mean over relations.
    recall_interval: its 95 % interval, over subjects.
    kept: by each promise.
    raw, calibrated: reliability of the pooled scores, and of the confidences out of fold.
    """

    relations: Mapping[str, RelationConfidence]
    recall: float
    recall_interval: tuple[float, float]
    kept: Mapping[str, Kept]
    raw: Reliability
    calibrated: Reliability

    @property
    def reached(self) -> int:
        """Return the number of relations that reach precision `PROMISED` with at least one fact."""
        return sum(relation.recall > 0 for relation in self.relations.values())

    def promising(self, promise: str) -> int:
        """Return the number of relations that promise `PROMISED`, in one of two ways."""
        return sum(relation.curves[promise].at(PROMISED) is not None for relation in self.relations.values())


def assess(
    tasks: Mapping[str, Task],
    lost: Mapping[str, Sequence[int]],
    fold: Mapping[str, Ints],
    inner: Mapping[str, Ints],
) -> Confidences:
    """Fit confidences to all queries, and measure them on held-out subjects.

    fold, inner: outer and inner fold of each relation's queries; no figure is of queries in no outer fold. lost: gold
    objects of each failed query.
    """
    whole = {name: np.ones(len(task.outcomes), dtype=np.bool_) for name, task in tasks.items()}
    most = {name: 1 if task.numeric else task.most for name, task in tasks.items()}  # nearby numbers are one fact
    final, confidence = calibrated(tasks, whole, fold)
    curves: dict[int, dict[str, dict[str, PrecisionCurve]]] = {}
    for number in _numbers(fold):
        rows = {name: fold[name] != number for name in tasks}
        by_others, inner_confidence = calibrated(tasks, rows, inner)
        learned = {
            name: Facts.of(task.outcomes, inner_confidence[name], rows[name], max_facts=most[name])
            for name, task in tasks.items()
        }
        curves[number] = Facts.curves_of(learned, most)
        for name, task in tasks.items():
            confidence[name][~rows[name]] = _probabilities(by_others[name], task.outcomes, ~rows[name])
    known = {
        name: Facts.of(task.outcomes, confidence[name], fold[name] != UNSCORED, lost.get(name, ()), most[name])
        for name, task in tasks.items()
    }
    learned_by_all = Facts.curves_of(known, most)
    relations: dict[str, RelationConfidence] = {}
    recalls: list[Floats] = []
    held: dict[str, list[_Held]] = {promise: [] for promise in PROMISES}
    for place, (name, facts) in enumerate(known.items()):
        scored = fold[name] != UNSCORED
        relations[name] = RelationConfidence(final[name], learned_by_all[name], facts.recall_at(PROMISED))
        draws = resampled(len(facts.gold), place)
        recalls.append(facts.resampled_recall(PROMISED, draws))
        for promise, counts in held.items():
            bounds = np.full(len(facts.gold), NEVER)
            for number, by_name in curves.items():
                point = by_name[name][promise].at(PROMISED)
                bounds[: scored.sum()][fold[name][scored] == number] = NEVER if point is None else point.threshold
            counts.append(_Held(*facts.kept(bounds), facts.gold, draws))
    scores, p, right, query = _judged(tasks, confidence)
    return Confidences(
        relations=relations,
        recall=float(np.mean([relation.recall for relation in relations.values()])),
        recall_interval=interval(np.mean(recalls, axis=0)),
        kept={promise: _kept(counts) for promise, counts in held.items()},
        raw=Reliability.of(scores, right, query),
        calibrated=Reliability.of(p, right, query),
    )


class _Held(NamedTuple):
    """Counts per query of a relation, (n,): facts kept, right facts, gold objects.

    draws: resamples of the queries, (resamples, n).
    """

    facts: Ints
    right: Ints
    gold: Ints
    draws: Ints


def _kept(held: Sequence[_Held]) -> Kept:
    facts, right, gold = (sum(int(one[column].sum()) for one in held) for column in range(3))
    some = [one for one in held if one.facts.any()]
    if not some:
        return Kept(facts=0, precision=None, interval=None, recall=0.0, relations=0, broken=0)
    drawn, hits = (np.sum([one.draws @ one[column] for one in some], axis=0) for column in range(2))
    return Kept(
        facts=facts,
        precision=min(right / facts, 1.0),
        interval=interval(np.minimum(hits[drawn > 0] / drawn[drawn > 0], 1.0)),
        recall=min(right / max(gold, 1), 1.0),
        relations=len(some),
        broken=sum(bool(one.right.sum() < PROMISED * one.facts.sum()) for one in some),
    )


def _judged(tasks: Mapping[str, Task], confidence: Mapping[str, Floats]) -> tuple[Floats, Floats, Floats, Ints]:
    """Return the pooled score, the confidence, whether it is right, and the query of every candidate, (f,) each."""
    made: list[tuple[Floats, Floats, Floats, Ints]] = []
    before = 0
    for name, task in tasks.items():
        real = confidence[name] >= 0
        right = np.minimum(task.outcomes.gains[real], 1).astype(float)
        query = before + np.nonzero(real)[0]
        made.append((task.outcomes.ranking.scores[real], confidence[name][real], right, query))
        before += len(task.outcomes)
    scores, sure, rights, queries = (np.concatenate(column) for column in zip(*made, strict=True))
    return scores, sure, rights, queries


def _numbers(fold: Mapping[str, Ints]) -> list[int]:
    return sorted({int(number) for numbers in fold.values() for number in np.unique(numbers)} - {UNSCORED})
