"""Tables of `pools.py`: F1 of each pool and way, and their means with standard errors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev

Made = Mapping[str, Mapping[str, Sequence[float]]]
"""Pool -> way -> F1 of each partition."""


def table_of(made: Made) -> dict[str, dict[str, str]]:
    """Return the means with their standard deviations over partitions."""
    return {name: {way: f"{fmean(f1):.3f} ± {stdev(f1):.3f}" for way, f1 in row.items()} for name, row in made.items()}


def compared(made: Made) -> dict[str, dict[str, str]]:
    """Return the mean over pools, its difference to the last way, and a third source's mean and least gain."""
    ways = list(next(iter(made.values())))
    means = {way: [fmean(row[way]) for row in made.values()] for way in ways}
    pairs = [(name, name.partition(" + ")[0]) for name in made if " + " in name and name.partition(" + ")[0] in made]
    added = {way: [_gains(made[three][way], made[two][way]) for three, two in pairs] for way in ways}
    last = means[ways[-1]]
    return {
        "mean over pools": {way: f"{fmean(own):.4f}" for way, own in means.items()},
        f"less {ways[-1]}": {way: with_error(_gains(own, last)) for way, own in means.items()},
        "a third source adds": {way: with_error([fmean(gains) for gains in own]) for way, own in added.items()},
        "at least": {way: with_error(min(own, key=fmean, default=())) for way, own in added.items()},
    }


def _gains(new: Sequence[float], old: Sequence[float]) -> list[float]:
    return [x - y for x, y in zip(new, old, strict=True)]


def with_error(values: Sequence[float]) -> str:
    """Return the mean with its standard error."""
    error = stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{fmean(values or [0.0]):+.4f} ± {error:.4f}"


def show(made: Made, *, head: bool = True) -> None:
    """Print rows of the table."""
    if head:
        print(f"{'pool':40}" + "".join(f"{way:>18}" for way in next(iter(made.values()))))
    for name, row in table_of(made).items():
        print(f"{name:40}" + "".join(f"{cell:>18}" for cell in row.values()), flush=True)
