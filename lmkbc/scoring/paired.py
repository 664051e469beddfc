"""Paired tests of two systems: a bootstrap interval, an exact sign-flip test, Holm's correction.

All take one number per subject: its contribution to the difference of two scores. The rows of a subject stay together,
since what a model knows about a subject affects all relations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
RESAMPLES = 10_000
LEVEL = 0.95
CELLS = 1 << 18
"""Cells of the lattice on which the distribution of sign-flipped sums is computed."""
_REACH = 9.0
"""Standard deviations that a sum of flipped signs exceeds with probability below 1e-17 (Hoeffding 1963)."""
_VANISHED = 1e-18
_BLOCK = 256


def interval(difference: float, deviations: Floats) -> tuple[float, float]:
    """Return the bootstrap interval of a difference of means, at `LEVEL`.

    deviations: per subject, the change if it is drawn once more. Each subject is drawn Poisson(1) times (Chamandy et
    al. 2012). Subjects of several relations thus stay whole, and every relation keeps its weight.
    """
    values, counts = np.unique(np.round(deviations, 12), return_counts=True)
    draw = np.random.default_rng(0)
    drawn = np.full(RESAMPLES, difference)
    for start in range(0, len(values), _BLOCK):
        part = slice(start, start + _BLOCK)
        drawn += (draw.poisson(counts[part], (RESAMPLES, len(counts[part]))) - counts[part]) @ values[part]
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def sign_flip(contributions: Floats) -> float:
    """Return the two-sided p-value of a sum when the sign of each subject's contribution is random (Fisher 1935).

    All 2^n flips are counted, without sampling. The distribution of their sums is a product of cosines, transformed
    back from the frequencies on a lattice (Pagano and Tritchler 1983). Rounding to the lattice may move a sum by some
    1e-4 standard deviations. Sums that close below the observed one count as reaching it. The p-value may thus be
    slightly too large, but never too small.
    """
    sizes = np.abs(contributions)
    scale = math.sqrt(float(sizes @ sizes))
    if scale == 0.0:
        return 1.0
    values, counts = np.unique(np.round(sizes[sizes > 0] / scale, 13), return_counts=True)
    total = float(values @ counts)
    step = 2.01 * min(total, _REACH) / CELLS
    units = np.rint(values / step).astype(np.int64)
    rounded = np.abs(values - units * step)
    slack = min(float(counts @ rounded), _REACH * math.sqrt(float(counts @ rounded**2))) + 1e-9
    spectrum = _spectrum(units, counts)
    shares = np.fft.irfft(spectrum, CELLS)
    sums = np.minimum(np.arange(CELLS), CELLS - np.arange(CELLS)) * step
    observed = abs(float(contributions.sum())) / scale
    reached = float(shares[sums >= observed - slack].sum())
    return min(1.0, max(reached, 2.0 ** (1 - min(int(counts.sum()), 40))))


def _spectrum(units: Ints, counts: Ints) -> Floats:
    """Return the product of cosines at all frequencies of the lattice; values near 0 are dropped early."""
    cosines = np.cos(2 * np.pi * np.arange(CELLS) / CELLS)
    frequencies = np.arange(CELLS // 2 + 1)
    product = np.ones(len(frequencies))
    for place in np.argsort(-counts, kind="stable"):
        product *= cosines[frequencies * units[place] % CELLS] ** counts[place]
        if place % 8 == 0:
            left = np.abs(product) > _VANISHED
            frequencies, product = frequencies[left], product[left]
    whole = np.zeros(CELLS // 2 + 1)
    whole[frequencies] = product
    return whole


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values after Holm's correction (Holm 1979), in the given order."""
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    corrected = [0.0] * len(p_values)
    least = 0.0
    for rank, place in enumerate(order):
        least = max(least, min(1.0, (len(order) - rank) * p_values[place]))
        corrected[place] = least
    return corrected
