"""Precision of a base from a labelled sample, with its interval, and recalibration of confidences by the labels.

The last axis of arrays is strata or bins. Any axes before it are allowed, such as the draws of a simulation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from lmkbc.kb.audit.sample import SampleCell
from lmkbc.select.calibration import SHARE_EDGE, log_odds, logistic
from lmkbc.select.ranking import Floats
from lmkbc.select.rule import significant

Z = NormalDist().inv_cdf(0.975)
RIDGE = 0.5
"""Strength of shrinkage of both weights, as the inverse variance of a Gaussian."""
AS_IT_IS = (0.0, 1.0)
"""Level and slope in the log-odds that leave a confidence as it is."""
STEPS = 30
PRIOR_FACTS = 0.5
"""Facts as which the expected precision of a stratum counts, in the estimate of its variance only."""


class Interval(NamedTuple):
    """A share and its 95 % interval."""

    share: Floats
    low: Floats
    high: Floats


def fitted(confidence: Floats, of: Floats, right: Floats, centre: Floats) -> Floats:
    """Return level and slope of logistic regressions on the log-odds of confidence, (..., 2), shrunk to a centre.

    confidence: (bins,). of: labelled facts, (..., bins). right: right facts among them, (..., bins). centre: level and
    slope towards which the weights are shrunk, (2,).
    """
    features = np.stack([np.ones_like(confidence), log_odds(confidence, SHARE_EDGE)], axis=-1)

    def loss(weights: Floats) -> Floats:
        z = weights @ features.T
        ridge = RIDGE / 2 * ((weights - centre) ** 2).sum(-1)
        return np.asarray((of * np.logaddexp(0.0, z) - right * z).sum(-1) + ridge)

    weights = np.broadcast_to(centre, (*right.shape[:-1], 2)).astype(np.float64)
    for _ in range(STEPS):
        p = logistic(weights @ features.T)
        gradient = (right - of * p) @ features - RIDGE * (weights - centre)
        curve = np.einsum("...b,bi,bj->...ij", of * p * (1 - p), features, features) + RIDGE * np.eye(2)
        step = np.linalg.solve(curve, gradient[..., None])[..., 0]
        sizes = 0.5 ** np.arange(0, 16, 3)
        losses = np.stack([loss(weights + size * step) for size in sizes])
        weights = weights + sizes[losses.argmin(0)][..., None] * step
        if np.abs(step).max(initial=0.0) < 1e-6:
            break
    return weights


def stratified(sizes: Floats, drawn: Floats, right: Floats, expected: Floats) -> Interval:
    """Return the share of right facts over strata: unbiased, with finite population correction and Wilson's interval.

    sizes: facts per stratum. drawn, right: labelled facts and right facts, (..., strata). expected: share of right
    facts by calibrated confidence.

    `expected` replaces the share of a stratum without labels, whose variance is then the largest possible for a share.
    In the variance of other strata, it counts as `PRIOR_FACTS` facts, so that three right facts of three are not
    certain. The division by 1 - n / (n + PRIOR_FACTS)^2 makes this variance unbiased if the expected share is the true
    one. Without a prior, n - 1 does the same. The interval is Wilson's for a simple sample with this variance.
    """
    weights, n = sizes / sizes.sum(), np.maximum(drawn, 1)
    own = (right + PRIOR_FACTS * expected) / (drawn + PRIOR_FACTS)
    unbiased = 1 - drawn / (drawn + PRIOR_FACTS) ** 2
    left = (sizes - drawn) / np.maximum(sizes - 1, 1)
    spread = np.where(drawn > 0, own * (1 - own) / unbiased, 0.25)
    variance = (weights**2 * spread * left / n).sum(-1)
    share = (weights * np.where(drawn > 0, right / n, expected)).sum(-1)
    mean = (weights * own).sum(-1)
    u = Z * Z * variance / (mean * (1 - mean))
    middle, half = (share + u / 2) / (1 + u), np.sqrt(u * share * (1 - share) + u * u / 4) / (1 + u)
    return Interval(share, np.clip(middle - half, 0.0, 1.0), np.clip(middle + half, 0.0, 1.0))


@dataclass(frozen=True, slots=True)
class Recalibration:
    """Level and slope for the log-odds of confidence: per relation, and pooled for relations without labels."""

    pooled: tuple[float, ...] = AS_IT_IS
    relations: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, relations: Sequence[str], confidence: Floats, of: Floats, right: Floats) -> Recalibration:
        """Fit to labelled facts or bins of facts, each with its relation. A relation is shrunk to the pooled fit."""
        pooled = fitted(confidence, of, right, np.array(AS_IT_IS))
        names, made = np.array(relations), dict[str, tuple[float, ...]]()
        for name in dict.fromkeys(relations):
            own = names == name
            made[name] = _rounded(fitted(confidence[own], of[own], right[own], pooled))
        return cls(_rounded(pooled), made)

    def expected(self, relations: Sequence[str], confidence: Floats) -> Floats:
        """Return the probability that each fact is right, given its relation and confidence."""
        weights = np.array([self.relations.get(name, self.pooled) for name in relations]).reshape(-1, 2)
        return logistic(weights[:, 0] + weights[:, 1] * log_odds(confidence, SHARE_EDGE))


def _rounded(weights: Floats) -> tuple[float, ...]:
    return tuple(significant(float(weight)) for weight in weights)


def shares(cells: Sequence[SampleCell], drawn: Floats, right: Floats) -> dict[str | None, Interval]:
    """Return precision by relation, and of the whole base under None. drawn, right: labelled facts, (..., cells)."""
    confidence, sizes = np.array([cell.confidence for cell in cells]), np.array([float(cell.size) for cell in cells])
    names, strata = np.array([cell.relation for cell in cells]), np.array([cell.stratum for cell in cells])
    z = log_odds(confidence, SHARE_EDGE)
    pooled = fitted(confidence, drawn, right, np.array(AS_IT_IS))
    expected, made = np.empty(right.shape), dict[str | None, Interval]()
    for name in dict.fromkeys(cell.relation for cell in cells):
        own = names == name
        weights = fitted(confidence[own], drawn[..., own], right[..., own], pooled)
        expected[..., own] = logistic(weights[..., :1] + weights[..., 1:] * z[own])
        made[name] = stratified(sizes[own], drawn[..., own], right[..., own], expected[..., own])
    within = (strata[:, None] == np.unique(strata)).astype(np.float64)
    of = sizes @ within
    return made | {None: stratified(of, drawn @ within, right @ within, (expected * sizes) @ within / of)}
