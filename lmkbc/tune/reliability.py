"""Reliability of confidences: how far they are from the share of right candidates, with intervals over queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np

from lmkbc.select.ranking import Floats, Ints
from lmkbc.select.rule import significant

BINS = 10
RESAMPLES = 500
INTERVAL = (0.025, 0.975)


class Bin(NamedTuple):
    """Bar of a reliability diagram: number of candidates, their mean confidence, and the share of right ones."""

    candidates: int
    confidence: float
    right: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    """Calibration errors over all candidates of all relations; 0 is best.

    ece: expected calibration error, the mean of |share right - mean confidence| over ten bins of equal width, weighted
    by their candidates (Naeini et al. 2015).
    ace: the same over ten bins of equal size; equal confidences share a bin (Nixon et al. 2019).
    brier: mean squared error (Brier 1950); it is not 0 for a constant confidence at the base rate.
    ace_spread, brier_spread: half the 95 % interval, over queries.
    bins: of equal width, for a diagram.
    """

    ece: float
    ace: float
    brier: float
    ace_spread: float = 0.0
    brier_spread: float = 0.0
    bins: tuple[Bin, ...] = ()

    @classmethod
    def of(cls, confidence: Floats, right: Floats, query: Ints) -> Reliability:
        """Return the reliability of candidates; all 0 if there are none.

        confidence, right: of each candidate, (f,). query: number of its query, (f,).
        """
        if not confidence.size:
            return cls(ece=0.0, ace=0.0, brier=0.0)
        wide, full = equal_width(confidence), equal_count(confidence)
        queries, squared = int(query.max()) + 1, (confidence - right) ** 2
        draws = resampled(queries)
        weight = np.maximum(draws @ np.bincount(query, minlength=queries), 1)
        gaps = np.bincount(query * BINS + full, right - confidence, queries * BINS).reshape(queries, BINS)
        return cls(
            ece=_error(wide, confidence, right),
            ace=_error(full, confidence, right),
            brier=float(squared.mean()),
            ace_spread=_spread(np.abs(draws @ gaps).sum(axis=1) / weight),
            brier_spread=_spread(draws @ np.bincount(query, squared, queries) / weight),
            bins=tuple(_bins(wide, confidence, right)),
        )


def equal_width(confidence: Floats) -> Ints:
    """Return the bin of each candidate among bins of equal width in [0, 1], (f,)."""
    return cast(Ints, np.minimum((confidence * BINS).astype(np.int64), BINS - 1))


def equal_count(confidence: Floats) -> Ints:
    """Return the bin of each candidate among bins of equal size, (f,); equal confidences share a bin."""
    _, first, inverse = np.unique(np.sort(confidence), return_index=True, return_inverse=True)
    order = np.argsort(confidence, kind="stable")
    places = np.empty(confidence.size, dtype=np.int64)
    places[order] = first[inverse] * BINS // confidence.size
    return places


def _error(places: Ints, confidence: Floats, right: Floats) -> float:
    return float(np.abs(np.bincount(places, right - confidence)).sum() / confidence.size)


def _bins(places: Ints, confidence: Floats, right: Floats) -> Sequence[Bin]:
    counts = np.bincount(places, minlength=BINS)
    sums = np.bincount(places, confidence, BINS), np.bincount(places, right, BINS)
    return [
        Bin(int(count), significant(float(sure / count)), significant(float(hits / count)))
        for count, sure, hits in zip(counts, *sums, strict=True)
        if count
    ]


def _spread(samples: Floats) -> float:
    low, high = interval(samples)
    return (high - low) / 2


def interval(samples: Floats) -> tuple[float, float]:
    """Return the middle 95 % of resampled figures."""
    low, high = np.quantile(samples, INTERVAL)
    return float(low), float(high)


def resampled(queries: int, seed: int = 0) -> Ints:
    """Return how often each query is drawn in each resample, (resamples, n).

    All facts of a query are drawn together.
    """
    return np.random.default_rng(seed).multinomial(queries, np.full(queries, 1 / queries), RESAMPLES)
