"""Quorum: keep what several models agree on, or what verification vouches for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lmkbc.select.ranking import Floats, Mask, Ranking
from lmkbc.select.rule import (
    Range,
    Real,
    SweptRule,
    Whole,
)


@dataclass(frozen=True, kw_only=True)
class Quorum(SweptRule):
    """Keep candidates that at least `models` distinct models propose and that score at least `floor`.

    Many draws of one model are one model: they do not corroborate each other. Candidates that verification holds true
    with at least `admit` need no corroboration; above 1, none is admitted so.
    """

    name: ClassVar[str] = "quorum"
    search: ClassVar[Mapping[str, Range]] = {"models": Whole(1, 5), "floor": Real(1e-3, 1.0, log=True)}
    swept: ClassVar[str] = "floor"
    models: int
    floor: float = 0.0
    admit: float = 2.0

    def levels(self, ranking: Ranking) -> Floats:
        """The scores of corroborated or admitted candidates."""
        agreed = ranking.models >= self.models
        if self.admit <= 1:
            agreed |= ranking.truths >= self.admit
        return np.where(agreed, ranking.scores, -1.0)

    def keep(self, ranking: Ranking) -> Mask:
        """Corroborated or admitted candidates, (n, m)."""
        kept: Mask = self.levels(ranking) >= max(self.floor, 0.0)
        return kept
