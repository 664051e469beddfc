"""The exact best value of one threshold: F1 changes only at observed scores, so all of them are tried at once."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from lmkbc.select.ranking import Floats, Ints, Mask
from lmkbc.select.rule import PrefixRule, SweptRule
from lmkbc.tune.outcomes import Outcomes

LOWEST = 1e-6
"""Scores below this count as zero when the middle of a plateau is computed."""
TIE = 1e-9
"""Totals that differ by less are one plateau: they are sums of the same F1 values in another order."""


@dataclass(frozen=True, eq=False)
class ThresholdSteps:
    """Changes of F1 as a threshold falls: at `at[i]`, query `row[i]` gains `gain[i]`; `at` descends.

    start: F1 of each query above all scores, (n,).
    """

    at: Floats
    gain: Floats
    row: Ints
    start: Floats


def steps_of(outcomes: Outcomes, levels: Floats, min_objects: int = 0) -> ThresholdSteps:
    """Return the steps of a threshold that keeps a prefix.

    levels: highest threshold that keeps each candidate, (n, m); below 0 if none does. The best `min_objects` are always
    kept.
    """
    always = min(min_objects, outcomes.ranking.scores.shape[1])
    _, gain, row, column = outcomes.changes
    at = levels[row, column]
    order = np.argsort(-at, kind="stable")
    order = order[(at[order] >= 0) & (column[order] >= always)]
    return ThresholdSteps(at[order], gain[order], row[order], outcomes.prefix_f1[:, always])


def cutoff_steps(outcomes: Outcomes, min_objects: int = 0, *, relative: bool = False) -> ThresholdSteps:
    """Return the steps of an absolute cut-off, or of one relative to each query's best score."""
    scores = outcomes.ranking.scores
    return steps_of(outcomes, scores / outcomes.ranking.reference[:, None] if relative else scores, min_objects)


def swept_steps(outcomes: Outcomes, rule: SweptRule) -> ThresholdSteps:
    """Return the steps of a rule's swept parameter, with its other parameters fixed."""
    if not isinstance(rule, PrefixRule):
        outcomes = outcomes.cached(passable, rule=rule)
    return steps_of(outcomes, rule.levels(outcomes.ranking), getattr(rule, "min", 0))


def passable(outcomes: Outcomes, rule: SweptRule) -> Outcomes:
    """Return the same queries with only the candidates that pass some value of the swept parameter."""
    passes = rule.levels(outcomes.ranking) >= 0
    kept = [
        replace(candidates, candidates=tuple(candidate for candidate, stays in zip(ranked, row, strict=False) if stays))
        for candidates, ranked, row in zip(outcomes.sets, outcomes.ranking.ranked, passes, strict=True)
    ]
    return Outcomes(kept, outcomes.examples, outcomes.edition)


def gated(steps: ThresholdSteps, opened: Mask, silent: Floats) -> ThresholdSteps:
    """Return the steps behind a gate. A query whose gate is closed has F1 `silent`, whatever the threshold."""
    behind = opened[steps.row]
    return ThresholdSteps(
        steps.at[behind], steps.gain[behind], steps.row[behind], np.where(opened, steps.start, silent)
    )


def gate_steps(strength: Floats, answered: Floats, silent: Floats) -> ThresholdSteps:
    """Return the steps of a gate: a query has F1 `answered` above its evidence, and `silent` at or below it."""
    order = np.argsort(-strength)
    return ThresholdSteps(strength[order], (silent - answered)[order], order, answered)


@dataclass(frozen=True, eq=False)
class Curve:
    """Total F1 of some queries as a step function of one threshold.

    falling: the negated thresholds at which it changes, ascending. totals: the totals, one more than thresholds; the
    first is above all thresholds.
    """

    falling: Floats
    totals: Floats

    @classmethod
    def of(cls, steps: ThresholdSteps, rows: Mask) -> Curve:
        """Return the sum of the steps of the queries chosen by `rows`, (n,)."""
        used = rows[steps.row]
        at, gain = steps.at[used], steps.gain[used]
        last = np.flatnonzero(np.append(at[1:] != at[:-1], np.ones(min(at.size, 1), dtype=np.bool_)))
        start = steps.start[rows].sum()
        return cls(-at[last], np.append(start, start + np.cumsum(gain)[last]))

    def total(self, threshold: float) -> float:
        """Return the total F1 at a threshold; all steps at or above the threshold count."""
        return float(self.totals[self.falling.searchsorted(-threshold, side="right")])

    def best(self) -> tuple[float, float]:
        """Return the threshold with the highest total, and that total; on a tie, the middle of the widest plateau.

        Widths are ratios, since scores span orders of magnitude.
        """
        ends = -self.falling  # totals are constant for thresholds in (next end, this end]
        high = np.append(np.maximum(2.0, 2 * ends[:1]) if ends.size else 2.0, ends)
        low = np.append(ends, 0.0)
        best = float(self.totals.max())
        good = np.flatnonzero(self.totals >= best - TIE)
        new_run = np.append(True, np.diff(good) > 1)
        lows, highs = low[good[np.append(new_run[1:], True)]], high[good[new_run]]
        widest = np.argmax(np.maximum(highs, LOWEST) / np.maximum(lows, LOWEST))
        return _middle(float(lows[widest]), float(highs[widest])), best


def _middle(low: float, high: float) -> float:
    """Return the geometric middle of (low, high] in few digits; `high` if no rounded value fits."""
    if high <= LOWEST:
        return max(high, 0.0)
    middle = math.sqrt(max(low, LOWEST) * high)
    for digits in range(2, 17):
        value = float(f"{middle:.{digits}g}")
        if low < value <= high and abs(math.log(value / middle)) <= 0.1 * math.log(high / max(low, LOWEST)):
            return value
    return high
