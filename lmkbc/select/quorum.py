"""Quorum: keep what several models agree on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from lmkbc.select.ranking import Mask, Ranking
from lmkbc.select.rule import MaskRule, Range, Real, Whole


@dataclass(frozen=True, kw_only=True)
class Quorum(MaskRule):
    """Keep candidates that at least `models` distinct models propose and that score at least `floor`.

    Many draws of one model are one model: they do not corroborate each other.
    """

    name: ClassVar[str] = "quorum"
    search: ClassVar[Mapping[str, Range]] = {"models": Whole(1, 5), "floor": Real(1e-3, 1.0, log=True)}
    models: int
    floor: float = 0.0

    def keep(self, ranking: Ranking) -> Mask:
        """Corroborated candidates, (n, m)."""
        return (ranking.models >= self.models) & (ranking.scores >= max(self.floor, 0.0))
