"""A calibration: from the evidence for candidates to probabilities of being right.

A model proposes some names whatever the subject is. How much it likes a name in general is therefore a second
evidence beside the score itself (contextual calibration, Zhao et al. 2021; domain PMI, Holtzman et al. 2021).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from lmkbc.select.evidence import HABIT, logistic, of_candidates, weighed
from lmkbc.select.ranking import Floats, Ranking

UNUSUAL = 0.005
"""Added to every name's mean score before the logarithm: half a subject in a hundred, so that rare names stay alike."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Logistic probabilities of candidates (Platt 1999, with more evidence).

    weights: evidence -> its weight in the log-odds (see `evidence`). habits: name -> mean score over all subjects, for
    the most usual names.
    """

    weights: Mapping[str, float]
    habits: Mapping[str, float] = field(default_factory=dict)

    def probabilities(self, ranking: Ranking) -> Floats:
        """Probability of each candidate, (n, m), -1 where padded; the same whatever queries it is asked beside."""
        usual = np.zeros(ranking.scores.shape)
        if self.habits:
            for row, ranked in zip(usual, ranking.ranked, strict=True):
                row[: len(ranked)] = [self.habits.get(candidate.text, 0.0) for candidate in ranked]
        return np.where(ranking.scores < 0, -1.0, self.of_evidence(of_candidates(ranking), usual))

    def of_evidence(self, columns: Mapping[str, Floats], usual: Floats) -> Floats:
        """Probabilities where the evidence is known, and the mean score of each candidate's name; all of one shape."""
        return logistic(weighed(columns, self.weights) + self.weights.get(HABIT, 0.0) * log_habit(usual))


def log_habit(usual: Floats) -> Floats:
    """Log of mean scores, smoothed."""
    logged: Floats = np.log(usual + UNUSUAL)
    return logged
