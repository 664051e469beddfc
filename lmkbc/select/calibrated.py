"""Calibrated: another rule on probabilities of being right in place of scores, so that it may weigh them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from lmkbc.select.calibration import Calibration
from lmkbc.select.evidence import logistic, of_nothing, weighed
from lmkbc.select.ranking import Floats, Mask, Ranking
from lmkbc.select.rule import MaskRule, kept_of


@dataclass(frozen=True, kw_only=True)
class Calibrated(MaskRule):
    """Another rule on the probabilities of a `Calibration` in place of scores.

    weights, nothing: evidence -> its weight in the log-odds of a candidate and of no object (see `evidence`); without
    any, the log-odds are the scores' own. habits: name -> mean score over all subjects, for the most usual names.
    """

    name: ClassVar[str] = "calibrated"
    inner: MaskRule
    weights: Mapping[str, float] = field(default_factory=lambda: {"score": 1.0})
    nothing: Mapping[str, float] = field(default_factory=lambda: {"nothing": 1.0})
    habits: Mapping[str, float] = field(default_factory=dict)

    @property
    def calibration(self) -> Calibration:
        """What makes probabilities of the candidates' evidence."""
        return Calibration(weights=self.weights, habits=self.habits)

    def probabilities(self, ranking: Ranking) -> Floats:
        """Probability of each candidate, (n, m), -1 where padded."""
        return self.calibration.probabilities(ranking)

    def keep(self, ranking: Ranking) -> Mask:
        """What the inner rule keeps of the candidates in the order of their probabilities, (n, m)."""
        p = self.probabilities(ranking)
        best = p.max(axis=1) if p.shape[1] else np.zeros(len(ranking.ranked))
        silence = logistic(weighed(of_nothing(ranking, best), self.nothing))
        return kept_of(self.inner, replace(ranking, nothing=silence), p)
