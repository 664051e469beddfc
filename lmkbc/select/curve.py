"""What precision a relation's facts reach from which confidence on, as tuning saw it on subjects that were held out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

LOOKS = 6
"""How many thresholds a curve is taken to have that say something of their own: one at each doubling of the facts."""
SURE = NormalDist().inv_cdf(1 - 0.05 / LOOKS)
"""Standard normal quantile of one-sided 95 %, less so of each look (Bonferroni), since the best threshold is chosen."""


class Point(NamedTuple):
    """From what confidence on facts are kept, the precision that this promises, and the recall that it had."""

    threshold: float
    precision: float
    recall: float


@dataclass(frozen=True, kw_only=True)
class PrecisionCurve:
    """Thresholds on a relation's confidence, each with the precision that what reaches it has at least.

    threshold: rising. precision: rising; what the share of right facts is at least (`at_least`), so that few facts
    promise little. recall: of all gold objects. max: how many facts a query may have.
    """

    threshold: tuple[float, ...] = ()
    precision: tuple[float, ...] = ()
    recall: tuple[float, ...] = ()
    max: int | None = None

    def __post_init__(self) -> None:
        """ValueError for columns that do not belong together."""
        if not len(self.threshold) == len(self.precision) == len(self.recall):
            raise ValueError("threshold, precision and recall differ in length")
        for name in ("threshold", "precision"):
            column = getattr(self, name)
            if not all(0 <= value <= 1 for value in column) or list(column) != sorted(column):
                raise ValueError(f"{name} holds no rising numbers in [0, 1]")

    def at(self, precision: float) -> Point | None:
        """The lowest threshold that promises a precision; None where none does."""
        points = map(Point, self.threshold, self.precision, self.recall)
        return next((point for point in points if point.precision >= precision), None)


def at_least(right: float, of: float) -> float:
    """Lower end of the interval of a share (Wilson 1927), also for the best of a curve's thresholds; 0 of nothing.

    Facts are taken as independent; those of one subject seldom are, which makes it somewhat too high.
    """
    if of <= 0:
        return 0.0
    share, z = min(right / of, 1.0), SURE * SURE
    middle = share + z / (2 * of)
    spread = SURE * math.sqrt(share * (1 - share) / of + z / (4 * of * of))
    return max((middle - spread) / (1 + z / of), 0.0)
