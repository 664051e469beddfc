"""Group numbers within a bounded diameter, and bound the check of a name (COVER-KBC, 2026)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from lmkbc.select.numeric import NumericRule, weighted_quantile
from lmkbc.select.ranking import Floats
from lmkbc.select.rule import Rule
from lmkbc.types import CandidateSet, Prediction


@dataclass(frozen=True, kw_only=True)
class Diameter(NumericRule):
    """Median of the heaviest cluster whose largest number is at most `diameter` above its smallest one, as a share.

    take: of clusters with equal weight, the first, or the "highest".
    """

    name: ClassVar[str] = "cover26/diameter"
    diameter: float
    take: Literal["first", "highest"] = "first"

    def points(self, values: Floats, weights: Floats) -> Sequence[float]:
        """Return the median of the chosen cluster."""
        starts = [0]
        for place in range(1, len(values)):
            if values[place] > values[starts[-1]] * (1 + self.diameter + 1e-9):
                starts.append(place)
        clusters = [*zip(np.split(values, starts[1:]), np.split(weights, starts[1:]), strict=True)]
        sums = [float(own.sum()) for _, own in clusters]
        heaviest = [one for one, total in zip(clusters, sums, strict=True) if total >= max(sums) - 1e-12]
        return (weighted_quantile(*heaviest[-1 if self.take == "highest" else 0], 0.5),)


@dataclass(frozen=True, kw_only=True)
class Valid(Rule):
    """Select as `inner` does from the candidates whose verification score is at least `least`, or unknown."""

    name: ClassVar[str] = "cover26/valid"
    inner: Rule
    least: float

    @property
    def reads_verification(self) -> bool:
        """Return True."""
        return True

    def select(self, candidates: CandidateSet) -> Prediction:
        """Return the selection of the inner rule."""
        valid = (one for one in candidates.candidates if one.verification is None or one.verification >= self.least)
        return self.inner.select(replace(candidates, candidates=tuple(valid)))


COMPONENTS = {Diameter.name: Diameter, Valid.name: Valid}
