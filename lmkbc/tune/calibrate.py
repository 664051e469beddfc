"""Fitting of calibrations: ridge logistic regression by Newton's method, without use of F1.

One regression over all relations gives general weights. The weights of each relation are shrunk towards them (partial
pooling). A relation with few rows, or with no right candidate, thus keeps the general weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lmkbc.select.calibration import (
    BIAS,
    EDGE,
    LABEL_PRIOR,
    SHARE,
    VERIFICATION,
    Calibration,
    informative,
    log_label_prior,
    logistic,
    of_candidates,
    of_nothing,
)
from lmkbc.select.expected_f1 import Calibrated, ExpectedF1
from lmkbc.select.ranking import Floats, Mask
from lmkbc.select.rule import significant
from lmkbc.tune.outcomes import Outcomes

USUAL = 30
"""Maximum number of names with a label prior: more change little and make thresholds files long."""
PRIOR = {"score": 0.5}
"""Prior means of the general weights. Model scores are over-confident, so their log-odds are halved."""
RIDGE, POOLED, FREE = 1.0, 3.0, 0.01
"""Strengths of shrinkage, as inverse variances of a Gaussian. POOLED is used if each model has its own weights, which
are correlated. FREE is used for a bias."""
Weights = Mapping[str, float]


def targets(label: Floats) -> Floats:
    """Return what a fit aims at in place of labels 0 and 1, (n,): with few labels, neither is sure (Platt 1999).

    Of p labels 1, each becomes (p + 1) / (p + 2). Of n labels 0, each becomes 1 / (n + 2).
    """
    positive = label.sum()
    return np.asarray(np.where(label > 0, (positive + 1) / (positive + 2), 1 / (label.size - positive + 2)))


def logistic_fit(columns: Mapping[str, Floats], label: Floats, prior: Weights) -> dict[str, float]:
    """Fit a logistic regression on columns of length n, with weights shrunk to `prior`, by damped Newton steps."""
    features = np.column_stack(list(columns.values()))
    start = np.array([prior.get(name, 0.0) for name in columns])
    weight = POOLED if any(":" in name for name in columns) else RIDGE
    ridge = np.array([FREE if name == BIAS else weight for name in columns])

    def loss(w: Floats) -> float:
        z = features @ w
        return float(np.logaddexp(0.0, z).sum() - label @ z + 0.5 * ridge @ (w - start) ** 2)

    w, current = start, loss(start)
    for _ in range(50):
        p = logistic(features @ w)
        gradient = features.T @ (p - label) + ridge * (w - start)
        step = np.linalg.solve((features.T * (p * (1 - p))) @ features + np.diag(ridge), gradient)
        size = 1.0
        while (value := loss(w - size * step)) > current and size > 1e-6:
            size /= 2
        w = w - size * step
        if current - value < 1e-6:
            break
        current = value
    return dict(zip(columns, w.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class CalibrationData:
    """Training data of a calibration: evidence for the candidates of some queries, and which candidates are right."""

    columns: dict[str, Floats]
    right: Floats
    label_priors: dict[str, float]

    @classmethod
    def of(cls, outcomes: Outcomes, rows: Mask, *, verdicts: bool = False) -> CalibrationData:
        """Return the data of the chosen queries, at least one.

        The label prior of a candidate leaves out its own score. verdicts: whether verification scores are evidence too.
        """
        scores, names, n = outcomes.ranking.scores, outcomes.names, int(rows.sum())
        chosen = (scores >= 0) & rows[:, None]
        totals = np.bincount(names[chosen], scores[chosen], minlength=len(outcomes.vocabulary))
        frequent = np.argsort(-totals, kind="stable")[:USUAL]
        kept = np.zeros_like(totals)
        kept[frequent] = totals[frequent]
        of_itself = np.where(kept[names[chosen]] > 0, scores[chosen], 0.0)
        columns = {
            name: column[chosen]
            for name, column in outcomes.cached(candidate_evidence).items()
            if name != SHARE and (verdicts or name not in VERIFICATION)
        }
        columns[LABEL_PRIOR] = log_label_prior(np.maximum(kept[names[chosen]] - of_itself, 0.0) / n)
        label_priors = {outcomes.vocabulary[i]: significant(kept[i] / n) for i in frequent if kept[i] / n > EDGE}
        return cls(columns, np.minimum(outcomes.gains[chosen], 1).astype(float), label_priors)


def candidate_evidence(outcomes: Outcomes) -> dict[str, Floats]:
    """Return the informative evidence for all candidates."""
    return informative(of_candidates(outcomes.ranking), len(outcomes.ranking.by_model))


def general(data: Sequence[CalibrationData]) -> Weights:
    """Return the weights of the evidence over all relations, as a prior for each; every candidate has equal weight."""
    data = [one for one in data if one.right.size]
    if not data:
        return PRIOR
    columns = {
        name: np.concatenate([one.columns.get(name, np.zeros(one.right.size)) for one in data])
        for name in dict.fromkeys(name for one in data for name in one.columns)
    }
    return logistic_fit(columns, targets(np.concatenate([one.right for one in data])), PRIOR)


def fit_calibration(data: CalibrationData, prior: Weights) -> Calibration:
    """Return the calibration of a relation's candidates, with weights shrunk to those over all relations."""
    weights = logistic_fit(data.columns, targets(data.right), prior)
    return Calibration(weights=_rounded(weights), label_priors=data.label_priors)


def fit_expected_f1(outcomes: Outcomes, rows: Mask, prior: Weights, *, nullable: bool) -> Calibrated:
    """Fit calibrated expected F1 to some queries, for candidates and (if nullable) for empty answers."""
    fitted = fit_calibration(CalibrationData.of(outcomes, rows), prior)
    missing = (outcomes.gold - np.minimum(outcomes.gains, 1).sum(axis=1))[rows]
    inner = ExpectedF1(min=0 if nullable else 1, missing=significant(max(float(missing.mean()), 0.0)))
    rule = Calibrated(inner=inner, weights=fitted.weights, label_priors=fitted.label_priors)
    return _with_nothing(rule, outcomes, rows) if nullable else rule


def _with_nothing(rule: Calibrated, outcomes: Outcomes, rows: Mask) -> Calibrated:
    best = rule.calibration.probabilities(outcomes.ranking).max(axis=1, initial=0.0)
    columns = informative(of_nothing(outcomes.ranking, best), len(outcomes.ranking.by_model))
    columns = {name: column[rows] for name, column in columns.items()}
    return replace(rule, nothing=_rounded(logistic_fit(columns, targets(outcomes.empty[rows].astype(float)), {})))


def _rounded(weights: Weights) -> dict[str, float]:
    return {name: significant(weight) for name, weight in weights.items()}
