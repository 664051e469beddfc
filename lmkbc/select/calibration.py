"""A calibration: from the evidence for candidates to probabilities of being right.

A model proposes some names whatever the subject is. How much it likes a name in general is therefore a second
evidence beside the score itself (contextual calibration, Zhao et al. 2021; domain PMI, Holtzman et al. 2021).

Each kind of evidence is a column with a name. The columns of single models carry the model's name, and their weights
are learned from data: nothing is known here of any model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import NamedTuple, cast

import numpy as np

from lmkbc.select.ranking import Floats, Ranking, table_of

LOOKS = 6
"""Number of independent thresholds that a curve is taken to have: a threshold at each doubling of the facts."""
SURE = NormalDist().inv_cdf(1 - 0.05 / LOOKS)
"""Standard normal quantile of one-sided 95 %, less so of each look (Bonferroni), since the best threshold is chosen."""
EDGE = 1e-4
"""Scores are kept this far from 0 and 1, so that no log-odds is infinite."""
SHARE_EDGE = 0.02
"""Distance from 0 and 1 for the evidence of no object: shares of few draws, where a share of 0 is not certain."""
FAINT = 1e-3
"""Scores below this are not told apart where they are compared with the best."""
SCALE = 4.0
"""Factor of a share, which makes its weight as large as the others', so that it shrinks like them."""
OLDER = ("share", "lead", "agreed")
"""Evidence that only older thresholds files weigh: a model that repeats another would be taken for agreement."""
VERIFICATION = ("judged", "verification")
"""Evidence from verification: confidences weigh it, rules read it through `verified` alone."""
BIAS = "bias"
LABEL_PRIOR = "label_prior"
OLD_NAMES = {"nil_probability": "doubt", LABEL_PRIOR: "habit", "verification": "truth"}
"""Names of evidence in older thresholds files."""
UNUSUAL = 0.005
"""Added to every name's mean score before the logarithm: half a subject in a hundred, so that rare names stay alike."""


def log_odds(p: Floats, edge: float = EDGE) -> Floats:
    """Return the log-odds of scores in [0, 1], kept finite."""
    clipped = np.clip(p, edge, 1 - edge)
    return cast(Floats, np.log(clipped) - np.log1p(-clipped))


def logistic(z: Floats) -> Floats:
    """Return the probability of log-odds."""
    return 1 / (1 + np.exp(-np.clip(z, -50.0, 50.0)))


def of_candidates(ranking: Ranking) -> dict[str, Floats]:
    """Return the evidence for each candidate, name -> (n, m), without its name's label prior.

    score: log-odds of the pooled score. length: log of the number of candidates. nil_probability, abstained: see
    `of_nothing`. judged: whether there is a verification score; verification: its log-odds. Per model, said: whether it
    proposes the candidate; agreed: whether another does too; score: if it does, its log-odds. For older files, share:
    the pooled score itself; lead: log of its ratio to the best one; agreed: whether several models propose it.
    """
    real, judged = ranking.scores >= 0, ranking.verifications >= 0
    lead = np.log(np.maximum(ranking.scores, FAINT) / np.maximum(ranking.best, FAINT)[:, None])
    nil = {name: column for name, column in _nil(ranking).items() if name != "nothing"}
    columns = {
        BIAS: np.where(real, 1.0, 0.0),
        "score": np.where(real, log_odds(ranking.scores), 0.0),
        "length": np.where(real, np.log(np.maximum(ranking.sizes, 1))[:, None], 0.0),
        **{name: np.where(real, column[:, None], 0.0) for name, column in nil.items()},
        "share": np.where(real, SCALE * ranking.scores, 0.0),
        "lead": np.where(real, lead, 0.0),
        "agreed": np.where(real & (ranking.models > 1), 1.0, 0.0),
        "judged": judged.astype(float),
        "verification": np.where(judged, log_odds(ranking.verifications, SHARE_EDGE), 0.0),
    }
    for model, given in ranking.by_model.items():
        proposed = given >= 0
        columns[f"{model}:said"] = proposed.astype(float)
        columns[f"{model}:agreed"] = (proposed & (ranking.models > 1)).astype(float)
        columns[f"{model}:score"] = np.where(proposed, log_odds(np.minimum(given, 1 - SHARE_EDGE)), 0.0)
    return columns


def of_nothing(ranking: Ranking, best: Floats) -> dict[str, Floats]:
    """Return the evidence that a query has no object, name -> (n,). best: probability of its best candidate.

    nothing, abstained, nil_probability: log-odds of the pooled score of nothing, of the share of abstaining draws, and
    of the NIL probability; the first and last also per model.
    """
    return {BIAS: np.ones(best.size), "best": log_odds(best), **_nil(ranking)}


def _nil(ranking: Ranking) -> dict[str, Floats]:
    columns = {"nothing": ranking.nothing, "abstained": ranking.abstained, "nil_probability": ranking.nil_probability}
    columns |= {name: np.where(column < 0, 0.5, column) for name, column in ranking.nil.items()}
    return {name: log_odds(column, SHARE_EDGE) for name, column in columns.items()}


def telling(columns: Mapping[str, Floats], models: int) -> dict[str, Floats]:
    """Return the columns that say something: not all zero; those of single models only if there are several."""
    return {
        name: column
        for name, column in columns.items()
        if column.any() and name not in OLDER and (models > 1 or ":" not in name)
    }


def weighed(columns: Mapping[str, Floats], weights: Mapping[str, float]) -> Floats:
    """Return log-odds: the weighted sum of the columns; a column without a weight counts nothing."""
    return np.asarray(sum(weight_of(name, weights) * column for name, column in columns.items()))


def weight_of(name: str, weights: Mapping[str, float]) -> float:
    """Return the weight of a column, 0 if it has none; older thresholds files have other names for some."""
    model, colon, kind = name.rpartition(":")
    return weights.get(name, weights.get(f"{model}{colon}{OLD_NAMES.get(kind, kind)}", 0.0))


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Logistic probabilities of candidates (Platt 1999, with more evidence).

    weights: evidence -> its weight in the log-odds (see `of_candidates`). label_priors: name -> mean score over all
    subjects, for the most usual names.
    """

    weights: Mapping[str, float]
    label_priors: Mapping[str, float] = field(default_factory=dict)

    def probabilities(self, ranking: Ranking) -> Floats:
        """Return the probability of each candidate, (n, m), -1 where padded; other queries do not change it."""
        priors, usual = self.label_priors, np.zeros(ranking.scores.shape)
        if priors:
            means = [[priors.get(one.text, 0.0) for one in candidates] for candidates in ranking.ranked]
            usual = table_of(means, ranking.scores.shape[1], 0.0)
        return np.where(ranking.scores < 0, -1.0, self.of_evidence(of_candidates(ranking), usual))

    def of_evidence(self, columns: Mapping[str, Floats], usual: Floats) -> Floats:
        """Return probabilities by the evidence and the mean score of each candidate's name; all of one shape."""
        return logistic(weighed(columns, self.weights) + weight_of(LABEL_PRIOR, self.weights) * log_label_prior(usual))


def log_label_prior(usual: Floats) -> Floats:
    """Return the log of mean scores, smoothed."""
    return cast(Floats, np.log(usual + UNUSUAL))


class Point(NamedTuple):
    """From what confidence on facts are kept, the precision that this promises, and the recall that it had."""

    threshold: float
    precision: float
    recall: float


@dataclass(frozen=True, kw_only=True)
class PrecisionCurve:
    """Thresholds on a relation's confidence, each with the precision that what reaches it has at least.

    threshold: rising. precision: rising; what the share of right facts is at least (`at_least`), so that few facts
    promise little. recall: of all gold objects. max: how many facts a query may have.
    """

    threshold: tuple[float, ...] = ()
    precision: tuple[float, ...] = ()
    recall: tuple[float, ...] = ()
    max: int | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for columns that do not belong together."""
        if not len(self.threshold) == len(self.precision) == len(self.recall):
            raise ValueError("threshold, precision and recall differ in length")
        for name in ("threshold", "precision"):
            column = getattr(self, name)
            if not all(0 <= value <= 1 for value in column) or list(column) != sorted(column):
                raise ValueError(f"{name} holds no rising numbers in [0, 1]")

    def at(self, precision: float) -> Point | None:
        """Return the lowest threshold that promises a precision; None where none does."""
        points = map(Point, self.threshold, self.precision, self.recall)
        return next((point for point in points if point.precision >= precision), None)


def at_least(right: float, of: float) -> float:
    """Return the lower end of a share's interval (Wilson 1927), for the best of a curve's thresholds too; 0 of nothing.

    Facts are taken as independent; those of one subject seldom are, which makes it somewhat too high.
    """
    if of <= 0:
        return 0.0
    share, z = min(right / of, 1.0), SURE * SURE
    middle = share + z / (2 * of)
    spread = SURE * math.sqrt(share * (1 - share) / of + z / (4 * of * of))
    return max((middle - spread) / (1 + z / of), 0.0)
