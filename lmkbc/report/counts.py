"""Counts of the rows of a page: errors, sizes of answers, and candidates by score, in memory of a fixed size.

Candidates of a relation whose scores agree in three digits are counted together.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lmkbc.report.rows import Error, Row

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

    def places(self, bins: int) -> Ints:
        """Return the bin of equal width of each level, (n,)."""
        return np.minimum(self.floor * bins // WHOLE, bins - 1)

    def binned(self, bins: int) -> tuple[Floats, Floats, Floats]:
        """Return mean score, number of right candidates, and number of candidates of each non-empty bin."""
        weights = (self.count, self.right, self.count * self.mean)
        count, right, total = (np.bincount(self.places(bins), own, bins).astype(np.float64) for own in weights)
        some = count > 0
        return total[some] / count[some], right[some], count[some]


@dataclass(slots=True)
class RowCounts:
    """Counts of all rows.

    confusion: queries by whether gold has objects, then by whether the answer has. sizes: (gold, kept) -> queries.
    gold: relation -> gold objects. scores: relation -> its scored candidates.
    """

    rows: int = 0
    confusion: list[list[int]] = field(default_factory=lambda: [[0, 0], [0, 0]])
    errors: Counter[Error] = field(default_factory=Counter)
    sizes: Counter[tuple[int, int]] = field(default_factory=Counter)
    gold: Counter[str] = field(default_factory=Counter)
    scores: defaultdict[str, ScoreCounts] = field(default_factory=lambda: defaultdict(ScoreCounts))

    def add(self, row: Row) -> None:
        """Count a row."""
        relation, score = row.pair[1], row.score
        self.rows += 1
        self.confusion[bool(score.gold)][bool(score.predicted)] += 1
        self.errors.update(row.errors)
        self.sizes[score.gold, score.predicted] += 1
        self.gold[relation] += score.gold
        for kept, objects in ((True, row.kept), (False, row.dropped)):
            for one in objects:
                if one.score is not None:
                    self.scores[relation].add(one.score, one.right, kept)
