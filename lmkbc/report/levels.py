"""Candidates by score: how many there are at each level, and how many of them are right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

WHOLE = 1_000_000
"""The score 1, in millionths. Files hold scores with six decimals."""
DIGITS = 3
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class ScoreCounts:
    """Numbers of right and of all candidates by score.

    least: the least score of a kept candidate; None if none was kept.
    """

    def __init__(self) -> None:
        self._cells = dict[int, list[float]]()  # score in millionths -> candidates, right ones, and sum of scores
        self.least: float | None = None

    def add(self, score: float, right: bool, kept: bool = False) -> None:
        """Count a candidate. score: in [0, 1]."""
        digits = str(round(score * WHOLE))
        cell = self._cells.setdefault(int(digits[:DIGITS].ljust(len(digits), "0")), [0, 0, 0.0])
        cell[0] += 1
        cell[1] += right
        cell[2] += score
        if kept:
            self.least = score if self.least is None else min(score, self.least)

    def __len__(self) -> int:
        """Return the number of candidates."""
        return sum(int(cell[0]) for cell in self._cells.values())

    def levels(self) -> ScoreLevels:
        """Return the numbers as arrays, the highest score first."""
        return ScoreLevels.of(sorted(self._cells.items(), reverse=True))


@dataclass(frozen=True, eq=False)
class ScoreLevels:
    """Candidates by score, in arrays of the same shape (n,). floor: score, rounded down, in millionths. mean: score."""

    floor: Ints
    count: Floats
    right: Floats
    mean: Floats

    @classmethod
    def of(cls, cells: Sequence[tuple[int, Sequence[float]]]) -> ScoreLevels:
        """Return the levels of (floor, (count, right, sum of scores))."""
        count, right, total = np.array([cell for _, cell in cells], dtype=float).reshape(-1, 3).T
        return cls(np.array([floor for floor, _ in cells], dtype=np.int64), count, right, total / count)

    @classmethod
    def union(cls, parts: Sequence[ScoreLevels]) -> ScoreLevels:
        """Return the levels of several relations, in no order."""
        floors = np.concatenate([np.zeros(0, dtype=np.int64), *(part.floor for part in parts)])
        count, right, mean = (
            np.concatenate([np.zeros(0), *(getattr(part, name) for part in parts)])
            for name in ("count", "right", "mean")
        )
        return cls(floors, count, right, mean)

    @property
    def spread(self) -> float:
        """Return the number of candidates with another score than the commonest one."""
        _, places = np.unique(self.floor, return_inverse=True)
        return float(self.count.sum() - np.bincount(places, self.count).max(initial=0))

    def places(self, bins: int) -> Ints:
        """Return the bin of equal width of each level, (n,)."""
        return np.minimum(self.floor * bins // WHOLE, bins - 1)

    def binned(self, bins: int) -> tuple[Floats, Floats, Floats]:
        """Return mean score, number of right candidates, and number of candidates of each non-empty bin."""
        weights = (self.count, self.right, self.count * self.mean)
        count, right, total = (np.bincount(self.places(bins), own, bins).astype(np.float64) for own in weights)
        some = count > 0
        return total[some] / count[some], right[some], count[some]
