"""The evidence for candidates and for nothing: what a calibration weighs, about sources in general.

Each feature is a column with a name. The features of single models carry the model's name, and their weights are
learned from data: nothing is known here of any model.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lmkbc.select.ranking import Floats, Ranking

EDGE = 1e-4
"""Scores are kept this far from 0 and 1, so that no log-odds is infinite."""
SHARE_EDGE = 0.02
"""The same for what is said about nothing: shares of few draws, where none at all is no certainty."""
FAINT = 1e-3
"""Scores below this are not told apart where they are compared with the best."""
SCALE = 4.0
"""What a share is multiplied with, so that its weight is of the size of the others' and shrinks like them."""
OF_SEVERAL = ("share", "lead", "agreed")
"""Evidence that tells something only where several models speak."""
VERDICT = ("judged", "truth")
"""Evidence from verification: confidences weigh it, rules heed it by `verified` alone."""
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


def of_candidates(ranking: Ranking) -> dict[str, Floats]:
    """Evidence for each candidate, name -> (n, m), without its name's habit.

    score: log-odds of the pooled score. length: log of the number of candidates. doubt, abstained: see `of_nothing`.
    Per model: whether it proposes the candidate, and if so its log-odds. share: the pooled score itself; lead: log of
    its ratio to the best one; agreed: whether more than one model proposes the candidate. judged: whether a verifier
    could tell; truth: log-odds of its verdict, if so.
    """
    real = ranking.scores >= 0
    columns = {
        BIAS: np.where(real, 1.0, 0.0),
        "score": np.where(real, log_odds(ranking.scores), 0.0),
        "length": np.where(real, np.log(np.maximum(ranking.sizes, 1))[:, None], 0.0),
    }
    for name, column in _silence(ranking).items():
        if name != "nothing":
            columns[name] = np.where(real, column[:, None], 0.0)
    lead = np.log(np.maximum(ranking.scores, FAINT) / np.maximum(ranking.best, FAINT)[:, None])
    columns["share"] = np.where(real, SCALE * ranking.scores, 0.0)
    columns["lead"] = np.where(real, lead, 0.0)
    columns["agreed"] = np.where(real & (ranking.models > 1), 1.0, 0.0)
    judged = ranking.truths >= 0
    columns["judged"] = judged.astype(float)
    columns["truth"] = np.where(judged, log_odds(ranking.truths, SHARE_EDGE), 0.0)
    for model, given in ranking.by_model.items():
        proposed = given >= 0
        columns[f"{model}:said"] = proposed.astype(float)
        columns[f"{model}:score"] = np.where(proposed, log_odds(np.minimum(given, 1 - SHARE_EDGE)), 0.0)
    return columns


def of_nothing(ranking: Ranking, best: Floats) -> dict[str, Floats]:
    """Evidence that a query has no object, name -> (n,). best: probability of its best candidate.

    nothing, abstained, doubt: log-odds of the pooled score of nothing, of the share of abstaining draws, and of one
    minus the existence probability; the first and last also per model.
    """
    return {BIAS: np.ones(best.size), "best": log_odds(best), **_silence(ranking)}


def _silence(ranking: Ranking) -> dict[str, Floats]:
    columns = {"nothing": ranking.nothing, "abstained": ranking.abstained, "doubt": ranking.doubt}
    columns |= {name: np.where(column < 0, 0.5, column) for name, column in ranking.silence.items()}
    return {name: log_odds(column, SHARE_EDGE) for name, column in columns.items()}


def telling(columns: Mapping[str, Floats], models: int) -> dict[str, Floats]:
    """The columns that tell something: not all zero, and what compares models only where there are several."""
    return {
        name: column
        for name, column in columns.items()
        if column.any() and (models > 1 or not (":" in name or name in OF_SEVERAL))
    }


def weighed(columns: Mapping[str, Floats], weights: Mapping[str, float]) -> Floats:
    """Log-odds: the weighted sum of the columns; a column without a weight counts nothing."""
    total: Floats = np.asarray(sum(weights.get(name, 0.0) * column for name, column in columns.items()))
    return total
