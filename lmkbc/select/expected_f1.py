"""Expected F1: keep the set with the highest F1 on average over the possible gold, the empty set included.

It reads scores as probabilities. `Calibrated` gives it, or any other rule, probabilities instead of scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar

import numpy as np

from lmkbc.select.calibration import Calibration, logistic, of_nothing, weighed
from lmkbc.select.ranking import Floats, Ints, Mask, Ranking
from lmkbc.select.rule import LEARNED, MaskRule, PrefixRule, kept_of

LIMIT = 20
"""Number of candidates whose expected F1 is computed exactly."""
LIKELY = 0.5
"""A list is long if more objects than this are expected beyond the limit."""


def expected_f1(p: Floats, missing: float = 0.0) -> Floats:
    """Return the expected official F1 of the first k of m candidates, for k = 0..m: (n, m) -> (n, m + 1).

    p: probability that each candidate is an object, independent of the others. missing: objects expected outside the
    list.

    With h of the k kept candidates true and r of the others true, F1 is 2h / (k + h + r + missing). Both h and r are
    Poisson-binomial; one convolution per candidate gives their distributions. An empty answer scores 1 if no candidate
    is true. For p in descending order, no other set of k candidates is better (Jansche, ACL 2007).
    """
    n, m = p.shape
    rest = np.zeros((m + 1, n, m + 1))  # rest[k]: distribution of the true ones among candidates k..
    rest[m, :, 0] = 1.0
    for k in range(m - 1, -1, -1):
        rest[k] = _with_one_more(rest[k + 1], p[:, k])
    values = np.empty((n, m + 1))
    values[:, 0] = rest[0, :, 0] * np.exp(-missing)
    true = np.zeros((n, m + 1))  # distribution of the true ones among the first k
    true[:, 0] = 1.0
    for k in range(1, m + 1):
        true = _with_one_more(true, p[:, k - 1])
        h, r = np.arange(k + 1)[:, None], np.arange(m - k + 1)[None, :]
        gain = 2 * h / (k + h + r + missing)
        values[:, k] = ((true[:, : k + 1] @ gain) * rest[k, :, : m - k + 1]).sum(axis=1)
    return values


def _with_one_more(counts: Floats, p: Floats) -> Floats:
    grown: Floats = counts * (1 - p)[:, None]
    grown[:, 1:] += counts[:, :-1] * p[:, None]
    return grown


@dataclass(frozen=True, kw_only=True)
class ExpectedF1(PrefixRule):
    """Keep the set with the highest expected F1; scores are read as independent probabilities (see `Calibrated`).

    The score of NIL, if proposed, replaces the probability that all candidates are wrong. missing: objects expected
    outside the candidates. The first `LIMIT` candidates are computed exactly (cost grows with its cube). If others are
    likely too, F1 of the expected counts replaces expected F1; both are close in long lists.
    """

    name: ClassVar[str] = "expected-f1"
    missing: Annotated[float, LEARNED] = 0.0

    def wanted(self, ranking: Ranking) -> Ints:
        """Return the best number of candidates to keep, (n,); the smaller on a tie."""
        return self.best(np.clip(ranking.scores, 0.0, 1.0), ranking.nothing)

    def best(self, p: Floats, nothing: Floats) -> Ints:
        """Return the best number of candidates to keep, the smaller on a tie: (n, m), (n,) -> (n,).

        p: probabilities in descending order. nothing: score of NIL, 0 if not proposed.
        """
        values, rest = self.values(p, nothing), p[:, LIMIT:]
        best: Ints = np.argmax(values > values.max(axis=1, keepdims=True) - 1e-12, axis=1)
        for row in np.flatnonzero(rest.sum(axis=1) > LIKELY):
            best[row] = self._of_many(p[row], values[row, 0])
        return best

    def values(self, p: Floats, nothing: Floats) -> Floats:
        """Return the expected F1 of the first k candidates, k = 0 to `LIMIT`: as `best`, but (n, m), (n,) -> (n, k)."""
        values = expected_f1(p[:, :LIMIT], self.missing)
        values[:, 0] *= np.prod(1 - p[:, LIMIT:], axis=1)
        values[:, 0] = np.where(nothing > 0, nothing, values[:, 0])
        return values

    def _of_many(self, p: Floats, nothing: float) -> int:
        true, kept = np.cumsum(p), np.arange(1, p.size + 1)
        values = 2 * true / (kept + true[-1] + self.missing)
        count = int(np.argmax(values))
        return count + 1 if values[count] > nothing else 0


@dataclass(frozen=True, kw_only=True)
class ExpectedCounts(PrefixRule):
    """Keep the candidates with the highest F1 of the expected counts; of equally good numbers of them, the most.

    For the best k of candidates with scores p, it is 2 (p_1 + ... + p_k) / (k + sum of all p); for no candidate, the
    score of NIL. Thus a list has objects even if all its scores are low, as those of many sources are that seldom
    agree. Nothing is learned, and scores need not be probabilities.
    """

    name: ClassVar[str] = "expected-counts"

    def wanted(self, ranking: Ranking) -> Ints:
        """Return the best number of candidates to keep, (n,)."""
        true = np.cumsum(np.maximum(ranking.scores, 0.0), axis=1)
        values = 2 * true / (np.arange(1, true.shape[1] + 1) + true[:, -1:])
        values = np.column_stack([ranking.nothing, np.where(ranking.scores > 0, values, -1.0)])
        best = values >= values.max(axis=1, keepdims=True) - 1e-12
        return np.asarray(true.shape[1] - np.argmax(best[:, ::-1], axis=1))


@dataclass(frozen=True, kw_only=True)
class Calibrated(MaskRule):
    """Apply `inner` to the probabilities of a `Calibration` instead of the scores.

    weights, nothing: evidence -> its weight in the log-odds of a candidate and of NIL (see `of_candidates`); by default
    the log-odds of the scores. label_priors: name -> mean score over all subjects, for the most frequent names.
    """

    name: ClassVar[str] = "calibrated"
    inner: MaskRule
    weights: Annotated[Mapping[str, float], LEARNED] = field(default_factory=lambda: {"score": 1.0})
    nothing: Annotated[Mapping[str, float], LEARNED] = field(default_factory=lambda: {"nothing": 1.0})
    label_priors: Annotated[Mapping[str, float], LEARNED] = field(default_factory=dict)

    @classmethod
    def by(cls, calibration: Calibration, inner: MaskRule) -> Calibrated:
        """Return the rule that applies `inner` to the probabilities of a calibration."""
        return cls(inner=inner, weights=calibration.weights, label_priors=calibration.label_priors)

    @property
    def reads_verification(self) -> bool:
        """Return whether its calibration, or the rule within it, does."""
        return self.calibration.reads_verification or super().reads_verification

    @property
    def calibration(self) -> Calibration:
        """Return the calibration of the candidates' scores."""
        return Calibration(weights=self.weights, label_priors=self.label_priors)

    def keep(self, ranking: Ranking) -> Mask:
        """Return which candidates the inner rule keeps when they are ordered by probability, (n, m)."""
        p = self.calibration.probabilities(ranking)
        best = p.max(axis=1) if p.shape[1] else np.zeros(len(ranking.ranked))
        nothing = logistic(weighed(of_nothing(ranking, best), self.nothing))
        return kept_of(self.inner, replace(ranking, nothing=nothing), p)
