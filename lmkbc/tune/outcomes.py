"""The official F1 of every possible selection: computed once per query, then looked up.

The best value of one threshold is exact: F1 changes only at observed scores, so all of them are tried at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np

from lmkbc.edition import Edition
from lmkbc.run.submission import answers
from lmkbc.scoring.table import f1
from lmkbc.select.cutoffs import Cutoff
from lmkbc.select.ranking import Floats, Ints, Mask, Ranking, table_of
from lmkbc.select.rule import PrefixRule, Rule, SweptRule
from lmkbc.select.selector import PerRelation
from lmkbc.types import Candidate, CandidateSet, Example, Prediction

Made = TypeVar("Made")
PLAIN = PerRelation(Cutoff(threshold=0.0))
"""Selector of a run that keeps all that its rules keep."""


@dataclass(frozen=True, eq=False)
class _Matched:
    """Key and matches of each ranked candidate of a query.

    keys: the scorer's key; "" for no answer.
    matches: indices of the matching gold objects.
    gold: number of gold objects.
    """

    keys: tuple[str, ...]
    matches: tuple[tuple[int, ...], ...]
    gold: int


class Outcomes:
    """F1 of any rule on the queries of one relation, without a new run of the scorer.

    The selector decides what stays of the objects that a rule keeps. The F1 of each set of candidates is computed once
    per query, and then looked up.
    """

    def __init__(
        self,
        sets: Sequence[CandidateSet],
        examples: Sequence[Example],
        edition: Edition,
        *,
        numeric: bool = False,
        selector: PerRelation = PLAIN,
    ) -> None:
        self.sets, self.examples, self.edition, self.selector = sets, examples, edition, selector
        self.tolerance: float | None = getattr(edition.metric.scorer, "tolerance", 0.0) if numeric else None
        self.ranking = Ranking.of(sets)
        self.empty = np.array([not example.objects for example in examples], dtype=np.bool_)
        self._made: dict[Any, Any] = {}
        self._f1: list[dict[bytes, float]] = [{} for _ in sets]
        self.matched = [
            _find(ranked, example, edition) for ranked, example in zip(self.ranking.ranked, examples, strict=True)
        ]

    @cached_property
    def vocabulary(self) -> list[str]:
        """Return the distinct proposed names, in order of appearance."""
        return list(dict.fromkeys(candidate.text for ranked in self.ranking.ranked for candidate in ranked))

    @cached_property
    def names(self) -> Ints:
        """Return each candidate's index in the vocabulary, (n, m), 0 for padding."""
        places = {name: place for place, name in enumerate(self.vocabulary)}
        names = [[places[candidate.text] for candidate in ranked] for ranked in self.ranking.ranked]
        return table_of(names, self.ranking.scores.shape[1], 0)

    @cached_property
    def gold(self) -> Ints:
        """Return the number of gold objects of each query, (n,)."""
        return np.array([matched.gold for matched in self.matched], dtype=np.int64)

    def __len__(self) -> int:
        return len(self.sets)

    def cached(self, make: Callable[..., Made], **options: Any) -> Made:
        """Return what `make` computes from these outcomes, from a cache that all folds share."""
        key = (make.__name__, *sorted(options.items()))
        if key not in self._made:
            self._made[key] = make(self, **options)
        return cast(Made, self._made[key])

    def f1(self, rule: Rule) -> Floats:
        """Return official F1 of each query for what a run keeps by a rule, (n,)."""
        mask = rule.keep(self.ranking)
        if mask is None:
            return self.f1_of(self.selector.kept(rule, self.sets))
        made = np.empty(len(self))
        for row, (kept, before) in enumerate(zip(np.packbits(mask, axis=1), self._f1, strict=True)):
            if (key := kept.tobytes()) not in before:
                hits, predicted = self.counts(row, self.answered(row, np.flatnonzero(mask[row]).tolist()))
                before[key] = f1(int(hits[-1]), int(predicted[-1]), self.matched[row].gold)
            made[row] = before[key]
        return made

    def f1_of(self, predictions: Sequence[Prediction]) -> Floats:
        """Return official F1 of each query's answer, (n,)."""
        return np.array([self._score(made, row) for row, made in enumerate(predictions)])

    def cached_f1(self, rule: Rule) -> Floats:
        """Return `f1` from a cache, for rules that are tried on several folds."""
        if rule not in self._made:
            self._made[rule] = self.f1(rule)
        return cast(Floats, self._made[rule])

    @cached_property
    def prefix_f1(self) -> Floats:
        """Return the F1 of each query if a rule keeps its best k candidates, k = 0..m, (n, m + 1).

        It is constant past the end of a list.
        """
        table = np.empty((len(self), self.ranking.scores.shape[1] + 1))
        for row, (line, ranked) in enumerate(zip(table, self.ranking.ranked, strict=True)):
            found, sizes = self.sets[row], range(len(ranked) + 1)
            if all(len(self.selector.answer(found, ranked[:size])) == size for size in sizes):
                hits, predicted = self.counts(row, sizes[:-1])  # of all prefixes at once
            else:
                answers = [self.counts(row, self.answered(row, sizes[:size])) for size in sizes]
                hits, predicted = (
                    np.array([column[-1] for column in columns]) for columns in zip(*answers, strict=True)
                )
            line[: len(sizes)] = official_f1(hits, predicted, self.gold[[row]])
            line[len(sizes) :] = line[len(ranked)]
        return table

    def answered(self, row: int, kept: Sequence[int]) -> list[int]:
        """Return the places of a query's answer if a rule keeps the candidates at some places."""
        ranked = self.ranking.ranked[row]
        answer = self.selector.answer(self.sets[row], tuple(ranked[place] for place in kept))
        stays = set(map(id, answer))
        return [place for place in kept if id(ranked[place]) in stays]

    def counts(self, row: int, order: Sequence[int]) -> tuple[Ints, Ints]:
        """Return hits and distinct answers of each prefix of a query's candidates in a given order."""
        matched, count = self.matched[row], self.edition.metric.scorer.count
        hits = np.zeros(len(order) + 1, dtype=np.int64)
        predicted = np.zeros(len(order) + 1, dtype=np.int64)
        matching: list[tuple[int, ...]] = []
        seen = {""}
        for k, place in enumerate(order, start=1):
            fresh = matched.keys[place] not in seen
            hits[k], predicted[k] = hits[k - 1], predicted[k - 1] + fresh
            seen.add(matched.keys[place])
            if fresh and matched.matches[place]:
                matching.append(matched.matches[place])
                hits[k] = count(matching)
        return hits, predicted

    @cached_property
    def gains(self) -> Ints:
        """Return the hits of each candidate alone, (n, m)."""
        count = self.edition.metric.scorer.count
        gains = [[count([match] if match else []) for match in one.matches] for one in self.matched]
        return table_of(gains, self.ranking.scores.shape[1], 0)

    def _score(self, prediction: Prediction, row: int) -> float:
        example, values = self.examples[row], answers(self.edition, prediction)
        return f1(*self.edition.metric.scorer.score(values, self.edition.gold_column(example), example.query.relation))


def _find(ranked: Sequence[Candidate], example: Example, edition: Edition) -> _Matched:
    scorer, gold = edition.metric.scorer, edition.gold_column(example)
    values = [edition.value(candidate).strip() for candidate in ranked]
    matches = tuple(scorer.matches(value, gold, example.query.relation) for value in values)
    return _Matched(tuple(map(scorer.key, values)), matches, len(gold))


def official_f1(hits: Ints, predicted: Ints, gold: Ints) -> Floats:
    """Return F1 as in all editions: precision is 1 for no answer and at most 1, recall is 1 for empty gold."""
    with np.errstate(divide="ignore", invalid="ignore"):
        p = np.where(predicted > 0, np.minimum(hits / predicted, 1.0), 1.0)
        r = np.where(gold > 0, hits / gold, 1.0)
        return np.where(p + r > 0, 2 * p * r / (p + r), 0.0)


LOWEST = 1e-6
"""Scores below this count as zero when the middle of a plateau is computed."""
TIE = 1e-9
"""Totals that differ by less are one plateau: they are sums of the same F1 values in another order."""


@dataclass(frozen=True, eq=False)
class ThresholdSteps:
    """Changes of F1 as a threshold falls: at `at[i]`, query `row[i]` gains `gain[i]`; `at` descends.

    start: F1 of each query above all scores, (n,).
    """

    at: Floats
    gain: Floats
    row: Ints
    start: Floats


def steps_of(outcomes: Outcomes, levels: Floats, rule: PrefixRule) -> ThresholdSteps:
    """Return the steps of a threshold that decides how many of the best candidates a rule wants.

    levels: highest threshold that each candidate passes, (n, m), descending; below 0 if there is none. rule: its bounds
    on the number of objects apply.
    """
    kept = rule.bounded(np.arange(levels.shape[1] + 1)[None, :], outcomes.ranking.sizes[:, None])
    f1 = np.take_along_axis(outcomes.prefix_f1, kept, axis=1)
    gain = np.diff(f1, axis=1)
    row, column = np.nonzero(gain * (levels >= 0))
    at = levels[row, column]
    order = np.argsort(-at, kind="stable")
    return ThresholdSteps(at[order], gain[row, column][order], row[order], f1[:, 0])


def cutoff_steps(outcomes: Outcomes, min_objects: int = 0, *, relative: bool = False) -> ThresholdSteps:
    """Return the steps of an absolute cut-off, or of one relative to each query's best score."""
    scores = outcomes.ranking.scores
    levels = scores / outcomes.ranking.reference[:, None] if relative else scores
    return steps_of(outcomes, levels, Cutoff(threshold=0.0, min=min_objects))


def swept_steps(outcomes: Outcomes, rule: SweptRule) -> ThresholdSteps:
    """Return the steps of a rule's swept parameter, with its other parameters fixed."""
    if isinstance(rule, PrefixRule):
        return steps_of(outcomes, rule.levels(outcomes.ranking), rule)
    outcomes = outcomes.cached(passable, rule=rule)
    return steps_of(outcomes, rule.levels(outcomes.ranking), Cutoff(threshold=0.0))


def passable(outcomes: Outcomes, rule: SweptRule) -> Outcomes:
    """Return the same queries with only the candidates that pass some value of the swept parameter."""
    passes = rule.levels(outcomes.ranking) >= 0
    kept = [
        replace(candidates, candidates=tuple(candidate for candidate, stays in zip(ranked, row, strict=False) if stays))
        for candidates, ranked, row in zip(outcomes.sets, outcomes.ranking.ranked, passes, strict=True)
    ]
    return Outcomes(kept, outcomes.examples, outcomes.edition, selector=outcomes.selector)


def gated(steps: ThresholdSteps, opened: Mask, silent: Floats) -> ThresholdSteps:
    """Return the steps behind a gate. A query whose gate is closed has F1 `silent`, whatever the threshold."""
    behind = opened[steps.row]
    return ThresholdSteps(
        steps.at[behind], steps.gain[behind], steps.row[behind], np.where(opened, steps.start, silent)
    )


def gate_steps(strength: Floats, answered: Floats, silent: Floats) -> ThresholdSteps:
    """Return the steps of a gate: a query has F1 `answered` above its evidence, and `silent` at or below it."""
    order = np.argsort(-strength)
    return ThresholdSteps(strength[order], (silent - answered)[order], order, answered)


@dataclass(frozen=True, eq=False)
class Curve:
    """Total F1 of some queries as a step function of one threshold.

    falling: the negated thresholds at which it changes, ascending. totals: the totals, one more than thresholds; the
    first is above all thresholds.
    """

    falling: Floats
    totals: Floats

    @classmethod
    def of(cls, steps: ThresholdSteps, rows: Mask) -> Curve:
        """Return the sum of the steps of the queries chosen by `rows`, (n,)."""
        used = rows[steps.row]
        at, gain = steps.at[used], steps.gain[used]
        last = np.flatnonzero(np.append(at[1:] != at[:-1], np.ones(min(at.size, 1), dtype=np.bool_)))
        start = steps.start[rows].sum()
        return cls(-at[last], np.append(start, start + np.cumsum(gain)[last]))

    def total(self, threshold: float) -> float:
        """Return the total F1 at a threshold; all steps at or above the threshold count."""
        return float(self.totals[self.falling.searchsorted(-threshold, side="right")])

    def best(self) -> tuple[float, float]:
        """Return the threshold with the highest total, and that total; on a tie, the middle of the widest plateau.

        Widths are ratios, since scores span orders of magnitude.
        """
        ends = -self.falling  # totals are constant for thresholds in (next end, this end]
        high = np.append(np.maximum(2.0, 2 * ends[:1]) if ends.size else 2.0, ends)
        low = np.append(ends, 0.0)
        best = float(self.totals.max())
        good = np.flatnonzero(self.totals >= best - TIE)
        new_run = np.append(True, np.diff(good) > 1)
        lows, highs = low[good[np.append(new_run[1:], True)]], high[good[new_run]]
        widest = np.argmax(np.maximum(highs, LOWEST) / np.maximum(lows, LOWEST))
        return _middle(float(lows[widest]), float(highs[widest])), best


def _middle(low: float, high: float) -> float:
    """Return the geometric middle of (low, high] in few digits; `high` if no rounded value fits."""
    if high <= LOWEST:
        return high
    middle = math.sqrt(max(low, LOWEST) * high)
    for digits in range(2, 17):
        value = float(f"{middle:.{digits}g}")
        if low < value <= high and abs(math.log(value / middle)) <= 0.1 * math.log(high / max(low, LOWEST)):
            return value
    return high
