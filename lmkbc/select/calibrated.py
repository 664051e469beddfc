"""Calibration: from scores to probabilities of being right, so that a rule may weigh them.

A model proposes some names whatever the subject is. How much it likes a name in general is therefore a second
evidence beside the score itself (contextual calibration, Zhao et al. 2021; domain PMI, Holtzman et al. 2021).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from lmkbc.select.ranking import Floats, Mask, Ranking
from lmkbc.select.rule import MaskRule, Range, Real

EDGE = 1e-4
"""Scores are kept this far from 0 and 1, so that no log-odds is infinite."""
UNUSUAL = 0.005
"""Added to every name's mean score before the logarithm: half a subject in a hundred, so that rare names stay alike."""


def log_odds(p: Floats) -> Floats:
    """Log-odds of scores in [0, 1], kept finite."""
    clipped = np.clip(p, EDGE, 1 - EDGE)
    odds: Floats = np.log(clipped) - np.log1p(-clipped)
    return odds


def logistic(z: Floats) -> Floats:
    """Probability of log-odds."""
    p: Floats = 1 / (1 + np.exp(-np.clip(z, -50.0, 50.0)))
    return p


@dataclass(frozen=True, kw_only=True)
class Calibrated(MaskRule):
    """Another rule on logistic probabilities (Platt 1999, with one more feature) in place of scores.

    Probability of a candidate: slope * log-odds of its score + habit * log of its name's mean score over all
    subjects + intercept. habits: name -> that mean, for the most usual names. Probability of nothing:
    nothing_slope * log-odds of its score (or of the share of abstaining draws) + best_slope * log-odds of the best
    candidate's probability + nothing_intercept.
    """

    name: ClassVar[str] = "calibrated"
    search: ClassVar[Mapping[str, Range]] = {"slope": Real(0.1, 3.0, log=True), "intercept": Real(-4.0, 4.0)}
    inner: MaskRule
    slope: float = 1.0
    intercept: float = 0.0
    habit: float = 0.0
    habits: Mapping[str, float] = field(default_factory=dict)
    nothing_slope: float = 1.0
    best_slope: float = 0.0
    nothing_intercept: float = 0.0

    def probabilities(self, ranking: Ranking) -> Floats:
        """Probability of each candidate, (n, m), -1 where padded."""
        usual = np.zeros(ranking.scores.shape)
        if self.habits:
            for row, ranked in zip(usual, ranking.ranked, strict=True):
                row[: len(ranked)] = [self.habits.get(candidate.text, 0.0) for candidate in ranked]
        z = self.slope * log_odds(ranking.scores) + self.habit * log_habit(usual) + self.intercept
        return np.where(ranking.scores < 0, -1.0, logistic(z))

    def keep(self, ranking: Ranking) -> Mask:
        """What the inner rule keeps of the candidates in the order of their probabilities, (n, m)."""
        p = self.probabilities(ranking)
        order = np.argsort(-p, axis=1, kind="stable")
        ranked = tuple(
            tuple(candidates[i] for i in places[: len(candidates)])
            for candidates, places in zip(ranking.ranked, order, strict=True)
        )
        p = np.take_along_axis(p, order, axis=1)
        best = p[:, 0] if p.shape[1] else np.zeros(len(ranked))
        z = self.nothing_slope * nothing_evidence(ranking) + self.best_slope * log_odds(best) + self.nothing_intercept
        inner = self.inner.keep(Ranking(ranked, p, logistic(z), ranking.abstained))
        mask = np.zeros(p.shape, dtype=np.bool_)
        np.put_along_axis(mask, order, inner, axis=1)
        return mask


def log_habit(usual: Floats) -> Floats:
    """Log of mean scores, smoothed."""
    logged: Floats = np.log(usual + UNUSUAL)
    return logged


def nothing_evidence(ranking: Ranking) -> Floats:
    """Log-odds of answering nothing, as proposed or as drawn, (n,)."""
    return log_odds(np.maximum(ranking.nothing, ranking.abstained))
