"""Bootstrap interval (95 %) of a score, over more queries of the same kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
RESAMPLES = 2000
LEVEL = 0.95


def half_width(strata: Sequence[Sequence[tuple[float, float]]], statistic: Callable[[Floats], Floats]) -> float | None:
    """Return half the width of the interval; None if a stratum has only one row, which gives no variance.

    strata: rows of two values, resampled within each stratum. statistic: function from the strata's mean rows,
    (resamples, strata, 2), to the scores, (resamples,). From a stratum of n rows, n - 1 are drawn. Otherwise the
    variance of small strata would be too low (McCarthy and Snowden 1985).
    """
    if not strata or min(map(len, strata)) < 2:
        return None
    draw = np.random.default_rng(0)
    means = np.empty((RESAMPLES, len(strata), 2))
    for place, rows in enumerate(strata):
        values, counts = np.unique(np.array(rows, dtype=np.float64), axis=0, return_counts=True)
        drawn = len(rows) - 1
        means[:, place] = draw.multinomial(drawn, counts / len(rows), RESAMPLES) @ values / drawn
    low, high = np.quantile(statistic(means), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(high - low) / 2
