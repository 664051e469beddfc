"""The evidence for candidates and for nothing: what a calibration weighs, about voices in general.

Each feature is a column with a name. The features of single models carry the model's name, and their weights are
learned from data: nothing is known here of any model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lmkbc.scorers import number
from lmkbc.select.ranking import Floats, Ints, Ranking

EDGE = 1e-4
"""Scores are kept this far from 0 and 1, so that no log-odds is infinite."""
SHARE_EDGE = 0.02
"""The same for what is said about nothing: shares of few draws, where none at all is no certainty."""
BIAS = "bias"
HABIT = "habit"


def log_odds(p: Floats, edge: float = EDGE) -> Floats:
    """Log-odds of scores in [0, 1], kept finite."""
    clipped = np.clip(p, edge, 1 - edge)
    odds: Floats = np.log(clipped) - np.log1p(-clipped)
    return odds


def logistic(z: Floats) -> Floats:
    """Probability of log-odds."""
    p: Floats = 1 / (1 + np.exp(-np.clip(z, -50.0, 50.0)))
    return p


def of_candidates(ranking: Ranking, tolerance: float | None = None) -> dict[str, Floats]:
    """Evidence for each candidate, name -> (n, m), without its name's habit.

    score: log-odds of the pooled score. length: log of the number of candidates. Where several models speak, per
    model: whether it proposes the candidate, and if so its log-odds. tolerance: of numbers that count as the same,
    so that a number's score is that of all numbers near it; None where candidates are no numbers.
    """
    real = ranking.scores >= 0
    near = _Near.of(ranking, tolerance) if tolerance is not None else None
    columns = {
        BIAS: np.where(real, 1.0, 0.0),
        "score": np.where(real, log_odds(near.total(ranking.scores) if near else ranking.scores), 0.0),
    }
    if near is None:
        columns["length"] = np.where(real, np.log(np.maximum(ranking.sizes, 1))[:, None], 0.0)
    if len(ranking.by_model) > 1:
        for model, given in ranking.by_model.items():
            total = near.total(given) if near else np.maximum(given, 0.0)
            said = total > 0
            columns[f"{model}:said"] = said.astype(float)
            columns[f"{model}:score"] = np.where(said, log_odds(total, SHARE_EDGE), 0.0)
    return columns


@dataclass(frozen=True, eq=False)
class _Near:
    """Which numbers of a query lie within a tolerance of each other: of its sorted candidates, first and last + 1."""

    order: Ints
    first: Ints
    last: Ints

    @classmethod
    def of(cls, ranking: Ranking, tolerance: float) -> _Near:
        values = np.abs(values_of(ranking))
        order = np.argsort(values, axis=1, kind="stable")
        first, last = np.empty_like(order), np.empty_like(order)
        for row, ascending in enumerate(np.take_along_axis(values, order, axis=1)):
            first[row] = np.searchsorted(ascending, values[row] / (1 + tolerance) * (1 - 1e-9), side="left")
            last[row] = np.searchsorted(ascending, values[row] * (1 + tolerance) * (1 + 1e-9), side="right")
        return cls(order, first, last)

    def total(self, scores: Floats) -> Floats:
        """The scores of all numbers near each, added up, (n, m)."""
        ascending = np.take_along_axis(np.maximum(scores, 0.0), self.order, axis=1)
        sums = np.pad(np.cumsum(ascending, axis=1), ((0, 0), (1, 0)))
        near = np.take_along_axis(sums, self.last, axis=1) - np.take_along_axis(sums, self.first, axis=1)
        return np.maximum(near, np.maximum(scores, 0.0))


def values_of(ranking: Ranking) -> Floats:
    """The number that each candidate is, (n, m), infinite where it is none."""
    values = np.full(ranking.scores.shape, np.inf)
    for row, candidates in zip(values, ranking.ranked, strict=True):
        numbers = (number(candidate.text) for candidate in candidates)
        row[: len(candidates)] = [np.inf if value is None or value != value else value for value in numbers]
    return values


def of_nothing(ranking: Ranking, best: Floats) -> dict[str, Floats]:
    """Evidence that a query has no object, name -> (n,). best: probability of its best candidate."""
    return {
        BIAS: np.ones(best.size),
        "best": log_odds(best),
        "nothing": log_odds(ranking.nothing, SHARE_EDGE),
        "abstained": log_odds(ranking.abstained, SHARE_EDGE),
        "doubt": log_odds(ranking.doubt, SHARE_EDGE),
    }


def weighed(columns: dict[str, Floats], weights: dict[str, float]) -> Floats:
    """Log-odds: the weighted sum of the columns; a column without a weight counts nothing."""
    total: Floats = np.asarray(sum(weights.get(name, 0.0) * column for name, column in columns.items()))
    return total
