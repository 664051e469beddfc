"""Cut-offs on the score: absolute, or relative to the best; and the best k."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lmkbc.select.ranking import (
    Floats,
    Ints,
    Ranking,
)
from lmkbc.select.rule import (
    CUT,
    PrefixRule,
    Range,
    Real,
    SweptRule,
    Whole,
    run_length,
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
        return run_length(ranking.ended >= max(self.threshold, 0.0))


@dataclass(frozen=True, kw_only=True)
class Relative(PrefixRule, SweptRule):
    """Keep every candidate that scores at least `ratio` of the query's best, and at least `floor`.

    Where the best scores 0 there is nothing to compare with, and no candidate passes; where it scores less than `best`,
    none does either, so that one bound decides whether to answer and the other how much (thylinao1, LM-KBC 2026).
    """

    name: ClassVar[str] = "relative"
    search: ClassVar[Mapping[str, Range]] = {
        "ratio": Real(1e-3, 1.0, log=True),
        "floor": Real(1e-6, 1.0, log=True),
        "best": Real(1e-3, 1.0, log=True),
    }
    swept: ClassVar[str] = "floor"
    ratio: float
    floor: float = 0.0
    best: float = 0.0

    def levels(self, ranking: Ranking) -> Floats:
        """The score of each candidate at or above the ratio, (n, m); -1 for the others, which no floor keeps."""
        return np.where(ranking.scores >= self._bound(ranking)[:, None], ranking.scores, -1.0)

    def wanted(self, ranking: Ranking) -> Ints:
        """Candidates at or above all bounds."""
        return run_length(ranking.ended >= np.maximum(self._bound(ranking), self.floor)[:, None])

    def _bound(self, ranking: Ranking) -> Floats:
        """What the ratio asks of each query's candidates, (n,); infinite where the best scores too little."""
        return np.where(ranking.best >= self.best, self.ratio * ranking.reference, np.inf)


@dataclass(frozen=True, kw_only=True)
class TopK(PrefixRule):
    """Keep the best `k`, whatever they score."""

    name: ClassVar[str] = "top-k"
    search: ClassVar[Mapping[str, Range]] = {"k": Whole(0, 10)}
    k: int

    def wanted(self, ranking: Ranking) -> Ints:
        """`k` for every query, (n,)."""
        return np.full(len(ranking.ranked), self.k, dtype=np.int64)
