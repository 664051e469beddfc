"""Source filter: another rule on what some of the sources propose; the others are left out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from lmkbc.errors import InputError
from lmkbc.select.ranking import Floats, Mask, Ranking
from lmkbc.select.rule import MaskRule, kept_of


@dataclass(frozen=True, kw_only=True)
class SourceFilter(MaskRule):
    """Select as `inner` does of what `sources` propose, each counting alike (Biester et al. 2023: which wordings).

    A candidate scores the mean over those of the sources that propose objects or nothing for the query; what none of
    them proposes is left out. So is what the other sources say of nothing.
    """

    name: ClassVar[str] = "source-filter"
    inner: MaskRule
    sources: tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse to listen to nobody."""
        if not self.sources:
            raise InputError("sources of rule source-filter is empty: name at least one source")

    def shares(self, ranking: Ranking) -> tuple[Floats, Floats]:
        """The scores of candidates, (n, m), -1 for those left out, and of nothing, (n,)."""
        nowhere, unheard = np.full(ranking.scores.shape, -1.0), np.full(len(ranking.ranked), -1.0)
        given = np.array([ranking.by_model.get(source, nowhere) for source in self.sources])
        silent = np.array([ranking.silence.get(f"{source}:nothing", unheard) for source in self.sources])
        heard = np.maximum((silent >= 0).sum(axis=0), 1)
        scores = np.maximum(given, 0.0).sum(axis=0) / heard[:, None]
        return np.where((given >= 0).any(axis=0), scores, -1.0), np.maximum(silent, 0.0).sum(axis=0) / heard

    def keep(self, ranking: Ranking) -> Mask:
        """What the inner rule keeps of the candidates in the order of their scores among the sources, (n, m)."""
        scores, nothing = self.shares(ranking)
        return kept_of(self.inner, replace(ranking, nothing=nothing), scores)
