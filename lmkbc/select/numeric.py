"""Numbers from many votes: the point, or the few points, that most draws for a quantity support.

A mean is never used: one wild draw would move it out of the official tolerance. The aggregations are those of the
LM-KBC 2026 systems; votes weigh what their candidates score.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lmkbc.answer.numbers import MOST_DIGITS
from lmkbc.scoring.matchers import number
from lmkbc.select.ranking import Floats, Mask, Ranking
from lmkbc.select.rule import Range, Real, Rule, Whole
from lmkbc.types import Candidate, CandidateSet, Prediction

LARGEST = 10.0**MOST_DIGITS
"""Votes from here on are none: no answer is so large, and what is computed with them would overflow."""


@dataclass(frozen=True, kw_only=True)
class NumericRule(Rule):
    """Answers with `points` of the positive votes, or with the best candidate where none is positive.

    between: whether a number between votes stays as it is, and is not rounded to what the votes are like.
    """

    between: bool = False

    @abstractmethod
    def points(self, values: Floats, weights: Floats) -> Sequence[float]:
        """Return the supported numbers of sorted positive values, best first."""

    def select(self, candidates: CandidateSet) -> Prediction:
        """Return the chosen numbers, nothing where no candidate is a number."""
        if candidates.failed:
            return Prediction(candidates.query, failed=True)
        return Prediction(candidates.query, self.answer(Ranking.of([candidates]).ranked[0]))

    def answer(self, ranked: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        """Return the chosen numbers of one query's ranked candidates."""
        read = ((number(candidate.text), candidate) for candidate in ranked)
        votes = [(value, candidate) for value, candidate in read if value is not None and abs(value) < LARGEST]
        positive = sorted(((value, max(c.score, 0.0)) for value, c in votes if value > 0), key=lambda vote: vote[0])
        if not any(weight for _, weight in positive) or votes[0][0] <= 0:
            return tuple(candidate for _, candidate in votes[:1])
        values, weights = np.array(positive).T
        return tuple(_vote_or_new(point, votes, exact=self.between) for point in self.points(values, weights))


def _vote_or_new(point: float, votes: Sequence[tuple[float, Candidate]], *, exact: bool) -> Candidate:
    """Return the vote for a number, or a candidate for one that lies between votes."""
    for value, candidate in votes:
        if math.isclose(value, point, rel_tol=1e-9):
            return candidate
    whole = not exact and all(value.is_integer() for value, _ in votes)
    text = _written(point, whole, digits=12 if exact else 6)
    return Candidate(text, min(math.fsum(max(candidate.score, 0.0) for _, candidate in votes), 1.0), id=text)


def _written(value: float, whole: bool, digits: int) -> str:
    """Return plain digits: a whole number, or so many significant ones (six are far below any tolerance)."""
    return (
        str(round(value)) if whole else np.format_float_positional(value, precision=digits, fractional=False, trim="-")
    )


@dataclass(frozen=True, kw_only=True)
class StabMid(NumericRule):
    """Geometric middle of the region in which most intervals of +-tolerance around the votes overlap (CS2 2026).

    The intervals are the same ratio to both sides, so that a lone vote is its own middle.
    """

    name: ClassVar[str] = "stab-mid"
    search: ClassVar[Mapping[str, Range]] = {"tolerance": Real(0.005, 0.3, log=True)}
    tolerance: float = 0.05

    def points(self, values: Floats, weights: Floats) -> Sequence[float]:
        """Sweep the interval ends; on a tie the region that is widest as a ratio."""
        ends = np.concatenate([values / (1 + self.tolerance), values * (1 + self.tolerance)])
        cover = np.concatenate([weights, -weights])
        order = np.lexsort((-cover, ends))  # at the same place intervals open before others close: they do touch
        ends, depth = ends[order], np.cumsum(cover[order])
        width = np.append(ends[1:] / ends[:-1], 0.0)
        deepest = np.flatnonzero(depth >= depth.max() - 1e-12)
        region = deepest[np.argmax(width[deepest])]
        return (float(np.sqrt(ends[region] * ends[region + 1])),)


@dataclass(frozen=True, kw_only=True)
class Ball(NumericRule):
    """The middle of the draws that make most of them right within +-tolerance (thylinao1 2026).

    A vote has the weight of the votes around it, each with a tolerance of its own, as the scorer has it of gold. Of the
    votes with most weight, the smallest counts; the median of those around it is answered where it loses none of them.
    """

    name: ClassVar[str] = "ball"
    search: ClassVar[Mapping[str, Range]] = {"tolerance": Real(0.005, 0.3, log=True)}
    tolerance: float = 0.05

    def points(self, values: Floats, weights: Floats) -> Sequence[float]:
        """Return the best supported vote, or the middle of what supports it."""
        support = [math.fsum(weights[self._near(vote, values)]) for vote in values]
        best = next(place for place, weight in enumerate(support) if weight >= max(support) - 1e-12)
        near = self._near(values[best], values)
        middle = quantile_between(values[near], weights[near], 0.5)
        keeps = math.fsum(weights[self._near(middle, values)]) >= support[best] - 1e-12
        return (middle if keeps else float(values[best]),)

    def _near(self, point: float, values: Floats) -> Mask:
        """Return the values that make a point right."""
        return np.abs(point - values) <= (self.tolerance + 1e-9) * values


@dataclass(frozen=True, kw_only=True)
class LogCluster(NumericRule):
    """Median of the heaviest cluster, single linkage in log10 (thylinao1 2026: width .05, a window of 12 %).

    between: where the median falls between two votes, their exact mean, not the lower one.
    """

    name: ClassVar[str] = "log-cluster"
    search: ClassVar[Mapping[str, Range]] = {"width": Real(0.005, 0.3, log=True)}
    width: float = 0.05
    between: bool = False

    def points(self, values: Floats, weights: Floats) -> Sequence[float]:
        """Cut where neighbours are farther apart than `width`, take the heaviest piece's median."""
        cuts = np.flatnonzero(np.diff(np.log10(values)) > self.width) + 1
        pieces = zip(np.split(values, cuts), np.split(weights, cuts), strict=True)
        median = quantile_between if self.between else weighted_quantile
        return (median(*max(pieces, key=lambda piece: piece[1].sum()), 0.5),)


@dataclass(frozen=True, kw_only=True)
class WeightedMedian(NumericRule):
    """The vote at a quantile of the weight; 0.5 is the median (Chironk 2026 also used an upper one, 0.55).

    between: where the quantile falls between two votes, their exact mean, not the lower one.
    """

    name: ClassVar[str] = "weighted-median"
    search: ClassVar[Mapping[str, Range]] = {"quantile": Real(0.3, 0.7)}
    quantile: float = 0.5
    between: bool = False

    def points(self, values: Floats, weights: Floats) -> Sequence[float]:
        """Return the weighted quantile."""
        quantile = quantile_between if self.between else weighted_quantile
        return (quantile(values, weights, self.quantile),)


@dataclass(frozen=True, kw_only=True)
class ExpectedScore(NumericRule):
    """Rule of k <= `max` numbers with the highest expected F1, 2 hits / (k + 1), for one true number (MAVE 2026).

    A number covers the votes within +-tolerance of it, and is right with the share of the weight that it covers. Each
    is the middle of what supports it best among the votes that no earlier one covers. Tolerance 0 takes the commonest.
    """

    name: ClassVar[str] = "expected-score"
    search: ClassVar[Mapping[str, Range]] = {"tolerance": Real(0.005, 0.3, log=True), "max": Whole(1, 3)}
    tolerance: float = 0.05
    max: int = 3

    def points(self, values: Floats, weights: Floats) -> Sequence[float]:
        """Return the best number of points, the fewer on a tie."""
        middle, left = StabMid(tolerance=self.tolerance), weights > 0
        chosen: list[float] = []
        covered: list[float] = []
        while left.any() and len(chosen) < self.max:
            (point,) = middle.points(values[left], weights[left])
            near = left & (np.abs(values / point - 1) <= self.tolerance + 1e-9)
            chosen.append(point)
            covered.append(math.fsum(weights[near]))
            left = left & ~near
        gains = [math.fsum(covered[:k]) * 2 / (k + 1) for k in range(1, len(chosen) + 1)]
        best = next(k for k, gain in enumerate(gains, start=1) if gain >= max(gains) - 1e-12)
        return chosen[:best]


def weighted_quantile(values: Floats, weights: Floats, quantile: float) -> float:
    """Return the smallest of sorted values at which at least that share of the weight is reached."""
    total = np.cumsum(weights)
    return float(values[min(np.searchsorted(total, quantile * total[-1] - 1e-12), len(values) - 1)])


def quantile_between(values: Floats, weights: Floats, quantile: float) -> float:
    """Return that value, and the mean of two sorted values where the quantile falls between them."""
    low = weighted_quantile(values, weights, quantile)
    return (low - weighted_quantile(-values[::-1], weights[::-1], 1 - quantile)) / 2
