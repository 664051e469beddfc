"""Fitting the calibration of one relation: ridge logistic regressions by Newton's method, no F1 looked at."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lmkbc.select.calibrated import EDGE, Calibrated, log_habit, log_odds, logistic, nothing_evidence
from lmkbc.select.expected_f1 import ExpectedF1
from lmkbc.select.ranking import Floats, Mask
from lmkbc.tune.outcomes import Outcomes

USUAL = 30
"""How many names a calibration keeps the habit of: more change little and make a thresholds file long."""
PRIOR = np.array([0.5, 0.0, 0.0])
"""What slope, habit and intercept shrink to: model scores are over-confident, so half their log-odds."""
RIDGE = np.array([1.0, 1.0, 0.01])
NOTHING_RIDGE = np.array([0.3, 0.3, 0.01])


def logistic_fit(features: Floats, label: Floats, prior: Floats, ridge: Floats) -> Floats:
    """Weights of a logistic regression, (n, d) features, shrunk to `prior`; damped Newton, which always converges."""

    def loss(w: Floats) -> float:
        z = features @ w
        return float(np.logaddexp(0.0, z).sum() - label @ z + 0.5 * ridge @ (w - prior) ** 2)

    w, current = prior, loss(prior)
    for _ in range(50):
        p = logistic(features @ w)
        gradient = features.T @ (p - label) + ridge * (w - prior)
        step = np.linalg.solve((features.T * (p * (1 - p))) @ features + np.diag(ridge), gradient)
        size = 1.0
        while (value := loss(w - size * step)) > current and size > 1e-6:
            size /= 2
        w = w - size * step
        if current - value < 1e-9:
            break
        current = value
    return w


def fit_expected_f1(outcomes: Outcomes, rows: Mask, *, nullable: bool) -> Calibrated:
    """Calibrated expected F1, fitted on some queries: which candidates are right, and which queries have no object.

    rows: at least one. A candidate's own score is taken out of its name's habit, so that no row explains itself.
    """
    ranking, n = outcomes.ranking, int(rows.sum())
    scores, names = ranking.scores, outcomes.names
    real = scores >= 0
    chosen = real & rows[:, None]
    totals = np.bincount(names[chosen], scores[chosen], minlength=len(outcomes.vocabulary))
    usual = np.argsort(-totals, kind="stable")[:USUAL]
    kept = np.zeros_like(totals)
    kept[usual] = totals[usual]
    own = np.where(kept[names[chosen]] > 0, scores[chosen], 0.0)
    habit = log_habit(np.maximum(kept[names[chosen]] - own, 0.0) / n)
    features = np.column_stack([log_odds(scores[chosen]), habit, np.ones(habit.size)])
    right = np.minimum(outcomes.gains[chosen], 1).astype(float)
    slope, weight, intercept = _short(logistic_fit(features, right, PRIOR, RIDGE))
    missing = (outcomes.gold - np.minimum(outcomes.gains, 1).sum(axis=1))[rows]
    inner = ExpectedF1(least=0 if nullable else 1, missing=_short([max(float(missing.mean()), 0.0)])[0])
    habits = {outcomes.vocabulary[i]: _short([kept[i] / n])[0] for i in usual if kept[i] / n > EDGE}
    rule = Calibrated(inner=inner, slope=slope, intercept=intercept, habit=weight, habits=habits)
    return _with_nothing(rule, outcomes, rows) if nullable else rule


def _with_nothing(rule: Calibrated, outcomes: Outcomes, rows: Mask) -> Calibrated:
    best = rule.probabilities(outcomes.ranking).max(axis=1, initial=0.0)
    features = np.column_stack([nothing_evidence(outcomes.ranking), log_odds(best), np.ones(best.size)])[rows]
    weights = logistic_fit(features, outcomes.empty[rows].astype(float), np.zeros(3), NOTHING_RIDGE)
    slope, best_slope, intercept = _short(weights)
    return replace(rule, nothing_slope=slope, best_slope=best_slope, nothing_intercept=intercept)


def _short(values: Floats | list[float]) -> list[float]:
    return [float(f"{value:.4g}") for value in values]
