"""Cut-offs on the score: absolute, relative to the best, sticky; and the best k."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from lmkbc.errors import InputError
from lmkbc.select.ranking import (
    Floats,
    Ints,
    Mask,
    Ranking,
)
from lmkbc.select.rule import (
    CUT,
    Choice,
    PrefixRule,
    Range,
    Real,
    SweptRule,
    Whole,
)


@dataclass(frozen=True, kw_only=True)
class Cutoff(PrefixRule, SweptRule):
    """Keep every candidate that scores at least `threshold`."""

    name: ClassVar[str] = "cutoff"
    search: ClassVar[Mapping[str, Range]] = {"threshold": CUT}
    swept: ClassVar[str] = "threshold"
    threshold: float

    def levels(self, ranking: Ranking) -> Floats:
        """The scores."""
        return ranking.scores

    def wanted(self, ranking: Ranking) -> Ints:
        """Candidates at or above the threshold."""
        return _run(ranking.ended >= max(self.threshold, 0.0))


@dataclass(frozen=True, kw_only=True)
class Relative(PrefixRule, SweptRule):
    """Keep every candidate that scores at least `ratio` of the query's best, and at least `floor`.

    Where the best scores 0 there is nothing to compare with, and no candidate passes.
    """

    name: ClassVar[str] = "relative"
    search: ClassVar[Mapping[str, Range]] = {"ratio": Real(1e-3, 1.0, log=True), "floor": Real(1e-6, 1.0, log=True)}
    swept: ClassVar[str] = "floor"
    ratio: float
    floor: float = 0.0

    def levels(self, ranking: Ranking) -> Floats:
        """The score of each candidate at or above the ratio, (n, m); -1 for the others, which no floor keeps."""
        return np.where(ranking.scores >= self.ratio * ranking.reference[:, None], ranking.scores, -1.0)

    def wanted(self, ranking: Ranking) -> Ints:
        """Candidates at or above both bounds."""
        return _run(ranking.ended >= np.maximum(self.ratio * ranking.reference, self.floor)[:, None])


@dataclass(frozen=True, kw_only=True)
class Sticky(PrefixRule, SweptRule):
    """Once a candidate has passed `threshold`, keep on while scores stay close (Li T. et al. 2022).

    reference: "previous" compares a candidate with the kept one before it (their paper), "threshold" with a relaxed
    threshold, ratio * threshold (their code).
    """

    name: ClassVar[str] = "sticky"
    search: ClassVar[Mapping[str, Range]] = {
        "threshold": CUT,
        "ratio": Real(0.05, 1.0),
        "reference": Choice(("previous", "threshold")),
    }
    swept: ClassVar[str] = "threshold"
    threshold: float
    ratio: float
    reference: Literal["previous", "threshold"] = "previous"

    def __post_init__(self) -> None:
        """Refuse an unknown reference."""
        if self.reference not in ("previous", "threshold"):
            raise InputError(f"reference of rule sticky is {self.reference!r}: use 'previous' or 'threshold'")

    def levels(self, ranking: Ranking) -> Floats:
        """The highest threshold that keeps each candidate, (n, m): at most the best score, where a run begins."""
        scores = ranking.scores
        if self.reference == "threshold":
            return np.where(scores < 0, -1.0, np.minimum(scores[:, :1], scores / self.ratio))
        stuck = np.zeros(scores.shape, dtype=np.bool_)
        stuck[:, 1:] = (scores[:, 1:] >= self.ratio * scores[:, :-1]) & (scores[:, 1:] >= 0)
        run: Floats = np.minimum.accumulate(np.where(stuck, np.inf, scores), axis=1)
        return run

    def wanted(self, ranking: Ranking) -> Ints:
        """The unbroken run of accepted candidates from the best on."""
        scores = ranking.ended
        accepted = scores >= max(self.threshold, 0.0)
        if self.reference == "threshold":
            accepted[:, 1:] = scores[:, 1:] >= max(self.threshold * self.ratio, 0.0)
        else:
            accepted[:, 1:] |= scores[:, 1:] >= self.ratio * scores[:, :-1]
        return _run(accepted)


@dataclass(frozen=True, kw_only=True)
class TopK(PrefixRule):
    """Keep the best `k`, whatever they score."""

    name: ClassVar[str] = "top-k"
    search: ClassVar[Mapping[str, Range]] = {"k": Whole(0, 10)}
    k: int

    def wanted(self, ranking: Ranking) -> Ints:
        """`k` for every query, (n,)."""
        return np.full(len(ranking.ranked), self.k, dtype=np.int64)


def _run(accepted: Mask) -> Ints:
    """How many are accepted before the first that is not; no list's end is."""
    lengths: Ints = np.argmin(accepted, axis=1)
    return lengths
