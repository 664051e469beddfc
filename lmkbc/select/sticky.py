"""Sticky: a cut-off that, once passed, lets candidates of near scores through as well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from lmkbc.errors import InputError
from lmkbc.select.ranking import Floats, Ints, Ranking
from lmkbc.select.rule import CUT, Choice, PrefixRule, Range, Real, SweptRule, run_length


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
        return run_length(accepted)
