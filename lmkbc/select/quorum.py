"""Quorum: keep what several models agree on, or what verification vouches for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from lmkbc.select.ranking import Mask, Ranking
from lmkbc.select.rule import MaskRule, Range, Real, Whole


@dataclass(frozen=True, kw_only=True)
class Quorum(MaskRule):
    """Keep candidates that at least `models` distinct models propose and that score at least `floor`.

    Many draws of one model are one model: they do not corroborate each other. Candidates that verification holds true
    with at least `admit` need no corroboration; above 1, none is admitted so.
    """

    name: ClassVar[str] = "quorum"
    search: ClassVar[Mapping[str, Range]] = {"models": Whole(1, 5), "floor": Real(1e-3, 1.0, log=True)}
    models: int
    floor: float = 0.0
    admit: float = 2.0

    def keep(self, ranking: Ranking) -> Mask:
        """Corroborated or admitted candidates, (n, m)."""
        agreed = ranking.models >= self.models
        if self.admit <= 1:
            agreed |= ranking.truths >= self.admit
        return agreed & (ranking.scores >= max(self.floor, 0.0))
