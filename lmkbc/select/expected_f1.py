"""Expected F1: keep the set that scores best on average over what the gold may be, nothing included."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lmkbc.select.ranking import Floats, Ints, Ranking
from lmkbc.select.rule import PrefixRule, Range, Real

EDGE = 1e-6


def expected_f1(p: Floats, missing: float = 0.0) -> Floats:
    """Expected official F1 of keeping the first k of m candidates, for k = 0..m: (n, m) -> (n, m + 1).

    p: probability that each candidate is an object, independent of the others. missing: objects expected outside the
    list. With h of the k kept ones true and r of the others, F1 is 2h / (k + h + r + missing); h and r are
    Poisson-binomial, so their distributions come from one convolution per candidate. Nothing scores 1 where nothing is
    true. For p in descending order no other set of k candidates does better (Jansche, ACL 2007).
    """
    n, m = p.shape
    rest = np.zeros((m + 1, n, m + 1))  # rest[k]: how many of candidates k.. are true
    rest[m, :, 0] = 1.0
    for k in range(m - 1, -1, -1):
        rest[k] = _with_one_more(rest[k + 1], p[:, k])
    values = np.empty((n, m + 1))
    values[:, 0] = rest[0, :, 0] * np.exp(-missing)
    true = np.zeros((n, m + 1))  # how many of the first k are true
    true[:, 0] = 1.0
    for k in range(1, m + 1):
        true = _with_one_more(true, p[:, k - 1])
        h, r = np.arange(k + 1)[:, None], np.arange(m - k + 1)[None, :]
        gain = 2 * h / (k + h + r + missing)
        values[:, k] = np.einsum("nh,hr,nr->n", true[:, : k + 1], gain, rest[k, :, : m - k + 1], optimize=True)
    return values


def _with_one_more(counts: Floats, p: Floats) -> Floats:
    grown = counts * (1 - p)[:, None]
    grown[:, 1:] += counts[:, :-1] * p[:, None]
    return grown


def log_odds(scores: Floats) -> Floats:
    """Log-odds of scores in [0, 1], kept finite."""
    clipped = np.clip(scores, EDGE, 1 - EDGE)
    return np.log(clipped) - np.log1p(-clipped)


def calibrated(scores: Floats, slope: float, intercept: float) -> Floats:
    """Probabilities from scores: Platt's logistic on log-odds (Platt 1999); padding stays impossible."""
    return np.where(scores < 0, 0.0, 1 / (1 + np.exp(-(slope * log_odds(scores) + intercept))))


@dataclass(frozen=True, kw_only=True)
class ExpectedF1(PrefixRule):
    """Keep the set with the highest expected F1 under calibrated, independent candidate probabilities.

    slope, intercept: log-odds of a score -> log-odds of being right; nothing_intercept: the same shift for the
    proposal to answer nothing, which, where made, replaces the chance that all candidates are wrong. missing:
    objects expected outside the candidates. limit: only so many candidates are weighed (cost grows with its cube).
    """

    name: ClassVar[str] = "expected-f1"
    search: ClassVar[Mapping[str, Range]] = {
        "slope": Real(0.2, 3.0, log=True),
        "intercept": Real(-4.0, 4.0),
        "nothing_intercept": Real(-4.0, 4.0),
        "missing": Real(0.0, 4.0),
    }
    slope: float = 1.0
    intercept: float = 0.0
    nothing_intercept: float = 0.0
    missing: float = 0.0
    limit: int = 30

    def wanted(self, ranking: Ranking) -> Ints:
        """The best number of candidates to keep, the smaller on a tie, (n,)."""
        p = calibrated(ranking.scores[:, : self.limit], self.slope, self.intercept)
        values = expected_f1(p, self.missing)
        nothing = calibrated(ranking.nothing, self.slope, self.nothing_intercept)
        values[:, 0] = np.where(ranking.nothing > 0, nothing, values[:, 0])
        return np.argmax(values > values.max(axis=1, keepdims=True) - 1e-12, axis=1)
