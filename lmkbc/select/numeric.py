"""Numbers from many votes: the one or few numbers that most draws support.

There is no mean of all votes, since one wild draw would move it out of the official tolerance. The aggregations are
those of the LM-KBC 2026 systems. The weight of a vote is the score of its candidate.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from lmkbc.kinds.numbers import MOST_DIGITS
from lmkbc.scoring.matchers import number
from lmkbc.select.ranking import Floats, Mask, best_first
from lmkbc.select.rule import Rule
from lmkbc.types import Candidate, CandidateSet, Prediction

LARGEST = 10.0**MOST_DIGITS
"""Larger votes are ignored: no answer is so large, and computations with them would overflow."""


@dataclass(frozen=True, kw_only=True)
class NumericRule(Rule):
    """Answer with `points` of the positive votes, or with the best candidate if no vote is positive.

    between: whether a number between votes stays exact; else it is rounded like the votes.
    """

    between: bool = False

    @abstractmethod
    def points(self, values: Floats, weights: Floats) -> Sequence[float]:
        """Return the supported numbers, best first. values: sorted and positive. weights: of the values."""

    def select(self, candidates: CandidateSet) -> Prediction:
        """Return the chosen numbers; nothing if no candidate is a number."""
        if candidates.failed:
            return Prediction(candidates.query, failed=True)
        return Prediction(candidates.query, self.answer(best_first(candidates)))

    def answer(self, ranked: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        """Return the chosen numbers for one query's ranked candidates."""
        read = ((number(candidate.text), candidate) for candidate in ranked)
        votes = [(value, candidate) for value, candidate in read if value is not None and abs(value) < LARGEST]
        positive = sorted(((value, max(c.score, 0.0)) for value, c in votes if value > 0), key=lambda vote: vote[0])
        if not any(weight for _, weight in positive) or votes[0][0] <= 0:
            return tuple(candidate for _, candidate in votes[:1])
        values, weights = np.array(positive).T
        return tuple(_vote_or_new(point, votes, exact=self.between) for point in self.points(values, weights))


def _vote_or_new(point: float, votes: Sequence[tuple[float, Candidate]], *, exact: bool) -> Candidate:
    """Return the vote that equals a number, or a new candidate for a number between votes."""
    for value, candidate in votes:
        if math.isclose(value, point, rel_tol=1e-9):
            return candidate
    whole = not exact and all(value.is_integer() for value, _ in votes)
    text = _written(point, whole, digits=12 if exact else 6)
    return Candidate(text, min(math.fsum(max(candidate.score, 0.0) for _, candidate in votes), 1.0), id=text)


def _written(value: float, whole: bool, digits: int) -> str:
    """Return a number in plain digits: whole, or with `digits` significant digits (six suffice for any tolerance)."""
    return (
        str(round(value)) if whole else np.format_float_positional(value, precision=digits, fractional=False, trim="-")
    )


@dataclass(frozen=True, kw_only=True)
class StabMid(NumericRule):
    """Geometric middle of the region in which most intervals of +-tolerance around the votes overlap (CS2 2026).

    The intervals have the same ratio to both sides, so the middle of a single vote is the vote itself.
    """

    name: ClassVar[str] = "stab-mid"
    tolerance: float = 0.05

    def points(self, values: Floats, weights: Floats) -> Sequence[float]:
        """Return the middle of the deepest region; on a tie, of the one that is widest as a ratio."""
        return (middle_of_deepest(values / (1 + self.tolerance), values * (1 + self.tolerance), weights),)


def middle_of_deepest(lows: Floats, highs: Floats, weights: Floats) -> float:
    """Return the geometric middle of the region that most intervals share; on a tie, of the widest as a ratio.

    lows, highs, weights: of the intervals, (n,).
    """
    ends, cover = np.concatenate([lows, highs]), np.concatenate([weights, -weights])
    order = np.lexsort((-cover, ends))  # at equal ends, intervals open before others close, since they touch
    ends, depth = ends[order], np.cumsum(cover[order])
    width = np.append(ends[1:] / ends[:-1], 0.0)
    deepest = np.flatnonzero(depth >= depth.max() - 1e-12)
    region = deepest[np.argmax(width[deepest])]
    return float(np.sqrt(ends[region] * ends[region + 1]))


@dataclass(frozen=True, kw_only=True)
class Ball(NumericRule):
    """Middle of the votes for which most votes are right within +-tolerance (thylinao1 2026).

    The support of a vote is the weight of the votes around it, each with its own tolerance, as the scorer applies it to
    gold. Among the votes with most support, take the smallest. Answer the median of its supporters, if that keeps all
    of them. take: another number of the supporters, whatever it keeps: the "upper" of the two in the middle, their
    "mean", or the "highest" (dukesun99, madalinmdv 2026).
    """

    name: ClassVar[str] = "ball"
    tolerance: float = 0.05
    take: Literal["median", "upper", "mean", "highest"] = "median"

    def supports(self, values: Floats, weights: Floats) -> Sequence[float]:
        """Return the support of each value."""
        return [math.fsum(weights[self._near(vote, values)]) for vote in values]

    def points(self, values: Floats, weights: Floats) -> Sequence[float]:
        """Return the vote with most support, or the number of its supporters that is to be taken."""
        support = self.supports(values, weights)
        best = next(place for place, weight in enumerate(support) if weight >= max(support) - 1e-12)
        near = self._near(values[best], values)
        if self.take != "median":
            return (_taken(self.take, values[near], weights[near]),)
        middle = quantile_between(values[near], weights[near], 0.5)
        keeps = math.fsum(weights[self._near(middle, values)]) >= support[best] - 1e-12
        return (middle if keeps else float(values[best]),)

    def _near(self, point: float, values: Floats) -> Mask:
        """Return which values accept a point as right."""
        return np.abs(point - values) <= (self.tolerance + 1e-9) * values


@dataclass(frozen=True, kw_only=True)
class LogCluster(NumericRule):
    """Median of the heaviest cluster, by single linkage in log10 (thylinao1 2026: width .05, a window of 12 %).

    between: whether a median between two votes is their exact mean; else it is the lower vote. take: another number of
    the cluster (dukesun99 2026: the highest).
    """

    name: ClassVar[str] = "log-cluster"
    width: float = 0.05
    between: bool = False
    take: Literal["median", "mean", "highest"] = "median"

    def points(self, values: Floats, weights: Floats) -> Sequence[float]:
        """Return the median of the heaviest cluster; a gap wider than `width` separates clusters."""
        cuts = np.flatnonzero(np.diff(np.log10(values)) > self.width) + 1
        pieces = zip(np.split(values, cuts), np.split(weights, cuts), strict=True)
        median = quantile_between if self.between else weighted_quantile
        heaviest = max(pieces, key=lambda piece: piece[1].sum())
        return (median(*heaviest, 0.5) if self.take == "median" else _taken(self.take, *heaviest),)


@dataclass(frozen=True, kw_only=True)
class WeightedMedian(NumericRule):
    """Vote at a quantile of the weight; 0.5 is the median (Chironk 2026 also used 0.55).

    between: whether a quantile between two votes is their exact mean; else it is the lower vote.
    """

    name: ClassVar[str] = "weighted-median"
    quantile: float = 0.5
    between: bool = False

    def points(self, values: Floats, weights: Floats) -> Sequence[float]:
        """Return the weighted quantile."""
        quantile = quantile_between if self.between else weighted_quantile
        return (quantile(values, weights, self.quantile),)


@dataclass(frozen=True, kw_only=True)
class ExpectedScore(NumericRule):
    """The k <= `max` numbers with the highest expected F1, 2 hits / (k + 1), for one true number (MAVE 2026).

    A number covers the votes within +-tolerance of it. The probability that it is right is its share of the weight.
    Each number is the middle of the best supported region among votes that no earlier number covers. With tolerance 0
    it is the most frequent vote.
    """

    name: ClassVar[str] = "expected-score"
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
        best = next((k for k, gain in enumerate(gains, start=1) if gain >= max(gains) - 1e-12), 0)
        return chosen[:best]


def _taken(which: str, values: Floats, weights: Floats) -> float:
    """Return the upper of the two in the middle of sorted values, their weighted mean, or the highest."""
    if which == "upper":
        return -weighted_quantile(-values[::-1], weights[::-1], 0.5)
    return float(values[-1]) if which == "highest" else float(np.average(values, weights=weights))


def weighted_quantile(values: Floats, weights: Floats, quantile: float) -> float:
    """Return the smallest of the sorted values at which the given share of the weight is reached."""
    total = np.cumsum(weights)
    return float(values[min(np.searchsorted(total, quantile * total[-1] - 1e-12), len(values) - 1)])


def quantile_between(values: Floats, weights: Floats, quantile: float) -> float:
    """Return the weighted quantile; the mean of two sorted values if the quantile falls between them."""
    low = weighted_quantile(values, weights, quantile)
    return (low - weighted_quantile(-values[::-1], weights[::-1], 1 - quantile)) / 2
