"""Calibration: from the evidence for candidates to probabilities of being right.

A model proposes some names for every subject. The mean score of a name over all subjects is therefore evidence besides
its score (contextual calibration, Zhao et al. 2021; domain PMI, Holtzman et al. 2021). Each kind of evidence is a
column with a name. The columns of single models carry the model's name. Their weights are learned from data; no model
is named here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import NamedTuple, cast

import numpy as np

from lmkbc.select.ranking import Floats, Ranking, table_of

LOOKS = 6
"""Assumed number of independent thresholds of a curve: one at each doubling of the facts."""
QUANTILE = NormalDist().inv_cdf(1 - 0.05 / LOOKS)
"""Normal quantile of one-sided 95 % after Bonferroni's correction for `LOOKS`, since the best threshold is chosen."""
EDGE = 1e-4
"""Scores are kept this far from 0 and 1, so that no log-odds is infinite."""
SHARE_EDGE = 0.02
"""Distance from 0 and 1 for evidence of no object: shares of few draws, among which 0 is not certain."""
VERIFICATION = ("judged", "verification")
"""Evidence from verification. Confidences use it; rules use it only within the rule `verified`."""
BIAS = "bias"
SHARE = "share"
"""Evidence of an untuned confidence (see `Ranking.shares`). Calibrations do not learn its weight."""
SUREST = 1 - 1e-6
"""Highest calibrated confidence: no number of labelled rows shows that a model is never wrong."""
LABEL_PRIOR = "label_prior"
UNUSUAL = 0.005
"""Smoothing: added to each name's mean score before the logarithm, so that all rare names have similar values."""


def log_odds(p: Floats, edge: float = EDGE) -> Floats:
    """Return the log-odds of scores in [0, 1], clipped by `edge` to stay finite."""
    clipped = np.clip(p, edge, 1 - edge)
    return cast(Floats, np.log(clipped) - np.log1p(-clipped))


def confidence_text(p: float, digits: int = 3) -> str:
    """Return a confidence as text. One below 1 is never shown as 1."""
    return f"{min(p, 1 - 10**-digits) if p < 1 else p:.{digits}f}"


def logistic(z: Floats) -> Floats:
    """Return the probabilities of log-odds."""
    return 1 / (1 + np.exp(-np.clip(z, -50.0, 50.0)))


def of_candidates(ranking: Ranking) -> dict[str, Floats]:
    """Return the evidence for each candidate, name -> (n, m), without the label prior of its name.

    score, share: log-odds of the pooled score, and of the untuned confidence. length: log of the number of candidates.
    nil_probability, abstained: see `of_nothing`. judged: whether there is a verification score. verification: its
    log-odds.

    Per model there are three columns. `said`: whether it proposes the candidate. agreed: whether another model does
    too. score: log-odds of its score, if it proposes the candidate.
    """
    real, judged = ranking.scores >= 0, ranking.verifications >= 0
    nil = {name: column for name, column in _nil(ranking).items() if name != "nothing"}
    columns = {
        BIAS: np.where(real, 1.0, 0.0),
        "score": np.where(real, log_odds(ranking.scores), 0.0),
        SHARE: np.where(real, log_odds(ranking.shares), 0.0),
        "length": np.where(real, np.log(np.maximum(ranking.sizes, 1))[:, None], 0.0),
        **{name: np.where(real, column[:, None], 0.0) for name, column in nil.items()},
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
    """Return the evidence that a query has no object, name -> (n,). best: probability of its best candidate, (n,).

    nothing, abstained, nil_probability: log-odds of the pooled score of NIL, of the share of draws that abstain, and of
    the NIL probability. The first and the last also exist per model.
    """
    return {BIAS: np.ones(best.size), "best": log_odds(best), **_nil(ranking)}


def _nil(ranking: Ranking) -> dict[str, Floats]:
    columns = {"nothing": ranking.nothing, "abstained": ranking.abstained, "nil_probability": ranking.nil_probability}
    columns |= {name: np.where(column < 0, 0.5, column) for name, column in ranking.nil.items()}
    return {name: log_odds(column, SHARE_EDGE) for name, column in columns.items()}


def informative(columns: Mapping[str, Floats], models: int) -> dict[str, Floats]:
    """Return the informative columns: not all zero, and those of single models only if there are several."""
    return {name: column for name, column in columns.items() if column.any() and (models > 1 or ":" not in name)}


def weighed(columns: Mapping[str, Floats], weights: Mapping[str, float]) -> Floats:
    """Return log-odds: the weighted sum of the columns. A column without a weight has weight 0."""
    return np.asarray(sum(weights.get(name, 0.0) * column for name, column in columns.items()))


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Logistic regression from evidence to the probability that a candidate is right (Platt 1999, with more evidence).

    weights: evidence -> its weight in the log-odds (see `of_candidates`). label_priors: name -> mean score over all
    subjects, for the most frequent names. highest: highest probability.
    """

    weights: Mapping[str, float]
    label_priors: Mapping[str, float] = field(default_factory=dict)
    highest: float = SUREST

    @property
    def reads_verification(self) -> bool:
        """Return whether verification scores are evidence."""
        return not self.weights.keys().isdisjoint(VERIFICATION)

    def probabilities(self, ranking: Ranking) -> Floats:
        """Return the probability of each candidate, (n, m), -1 for padding. It does not depend on other queries."""
        priors, prior_scores = self.label_priors, np.zeros(ranking.scores.shape)
        if priors:
            means = [[priors.get(one.text, 0.0) for one in candidates] for candidates in ranking.ranked]
            prior_scores = table_of(means, ranking.scores.shape[1], 0.0)
        return np.where(ranking.scores < 0, -1.0, self.of_evidence(of_candidates(ranking), prior_scores))

    def of_evidence(self, columns: Mapping[str, Floats], prior_scores: Floats) -> Floats:
        """Return the probabilities of candidates. prior_scores: mean scores of their names. All have one shape."""
        log_label_priors = self.weights.get(LABEL_PRIOR, 0.0) * log_label_prior(prior_scores)
        return np.minimum(logistic(weighed(columns, self.weights) + log_label_priors), self.highest)


def log_label_prior(prior_scores: Floats) -> Floats:
    """Return the log of mean scores, smoothed."""
    return cast(Floats, np.log(prior_scores + UNUSUAL))


class Point(NamedTuple):
    """A threshold on confidence, the precision that it promises, and its recall in tuning."""

    threshold: float
    precision: float
    recall: float


@dataclass(frozen=True, kw_only=True)
class PrecisionCurve:
    """Thresholds on a relation's confidence, each with the precision that it promises for what is above it.

    threshold, precision: ascending.
    precision: promised share of right facts, by one of `PROMISES`; it is low if there are few facts.
    recall: share of all gold objects.
    max: maximum number of facts of a query; None for no limit.
    """

    threshold: tuple[float, ...] = ()
    precision: tuple[float, ...] = ()
    recall: tuple[float, ...] = ()
    max: int | None = None

    def __post_init__(self) -> None:
        """Raise ValueError if the columns differ in length, or do not ascend within [0, 1]."""
        if not len(self.threshold) == len(self.precision) == len(self.recall):
            raise ValueError("threshold, precision and recall differ in length")
        for name in ("threshold", "precision"):
            column = getattr(self, name)
            if not all(0 <= value <= 1 for value in column) or list(column) != sorted(column):
                raise ValueError(f"{name} holds no rising numbers in [0, 1]")

    @property
    def points(self) -> list[Point]:
        """Return the points, the surest last."""
        return list(map(Point, self.threshold, self.precision, self.recall))

    def at(self, precision: float) -> Point | None:
        """Return the lowest threshold that promises a precision; None if none does."""
        return next((point for point in self.points if point.precision >= precision), None)


def at_least(right: float, of: float) -> float:
    """Return the lower bound of a share (Wilson 1927), corrected for the choice of the best threshold; 0 if `of` is 0.

    right: number of right facts. of: number of facts. Facts are assumed independent. Facts of one subject are seldom
    independent, so the bound is somewhat too high.
    """
    if of <= 0:
        return 0.0
    share, z = min(right / of, 1.0), QUANTILE * QUANTILE
    middle = share + z / (2 * of)
    spread = QUANTILE * math.sqrt(share * (1 - share) / of + z / (4 * of * of))
    return max((middle - spread) / (1 + z / of), 0.0)


def on_average(right: float, of: float, most: float) -> float:
    """Return the share that holds on average over draws of labelled subjects (LEC, arXiv 2512.01556); 0 if `of` is 0.

    The expected errors among the facts of a new subject are at most this part of its expected facts. All facts of one
    more subject are counted as errors. right, of: as for `at_least`. most: facts of the subject with the most.
    """
    return max((min(right, of) - most) / of, 0.0) if of > 0 else 0.0


class Promise(NamedTuple):
    """A way to promise a precision.

    bound: the precision by right facts, facts, and facts of the subject with the most. together: whether the facts of
    all relations are counted together, so that one threshold is for all. words: how a run says it.
    """

    bound: Callable[[float, float, float], float]
    together: bool = False
    words: str = ""


SURE, AVERAGE, OVERALL = "sure", "average", "overall"
PROMISES = {
    SURE: Promise(lambda right, of, _: at_least(right, of)),
    AVERAGE: Promise(on_average, words=" on average"),
    OVERALL: Promise(on_average, together=True, words=" overall"),
}
"""How a precision is promised.

sure: it holds for 95 % of all draws of labelled rows. average: it holds for the mean of all draws. overall: it holds
for the mean of all draws, and for all relations together, as often as they are among the labelled rows.
"""
