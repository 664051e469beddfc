"""Calibration: from scores to probabilities of being right, so that a rule may weigh them.

A model proposes some names whatever the subject is. How much it likes a name in general is therefore a second
evidence beside the score itself (contextual calibration, Zhao et al. 2021; domain PMI, Holtzman et al. 2021).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from lmkbc.select.evidence import (
    HABIT,
    logistic,
    of_candidates,
    of_nothing,
    weighed,
)
from lmkbc.select.ranking import Floats, Mask, Ranking
from lmkbc.select.rule import MaskRule, kept_of

UNUSUAL = 0.005
"""Added to every name's mean score before the logarithm: half a subject in a hundred, so that rare names stay alike."""


@dataclass(frozen=True, kw_only=True)
class Calibrated(MaskRule):
    """Another rule on logistic probabilities (Platt 1999, with more evidence) in place of scores.

    weights, nothing: evidence -> its weight in the log-odds of a candidate and of no object (see `evidence`); without
    any, the log-odds are the scores' own. habits: name -> mean score over all subjects, for the most usual names.
    """

    name: ClassVar[str] = "calibrated"
    inner: MaskRule
    weights: Mapping[str, float] = field(default_factory=lambda: {"score": 1.0})
    nothing: Mapping[str, float] = field(default_factory=lambda: {"nothing": 1.0})
    habits: Mapping[str, float] = field(default_factory=dict)

    def probabilities(self, ranking: Ranking) -> Floats:
        """Probability of each candidate, (n, m), -1 where padded."""
        columns = of_candidates(ranking)
        usual = np.zeros(ranking.scores.shape)
        if self.habits:
            for row, ranked in zip(usual, ranking.ranked, strict=True):
                row[: len(ranked)] = [self.habits.get(candidate.text, 0.0) for candidate in ranked]
        z = weighed(columns, self.weights) + self.weights.get(HABIT, 0.0) * log_habit(usual)
        return np.where(ranking.scores < 0, -1.0, logistic(z))

    def keep(self, ranking: Ranking) -> Mask:
        """What the inner rule keeps of the candidates in the order of their probabilities, (n, m)."""
        p = self.probabilities(ranking)
        best = p.max(axis=1) if p.shape[1] else np.zeros(len(ranking.ranked))
        silence = logistic(weighed(of_nothing(ranking, best), self.nothing))
        return kept_of(self.inner, replace(ranking, nothing=silence), p)


def log_habit(usual: Floats) -> Floats:
    """Log of mean scores, smoothed."""
    logged: Floats = np.log(usual + UNUSUAL)
    return logged
