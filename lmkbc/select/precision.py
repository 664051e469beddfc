"""At a precision: in place of each relation's rule, what is expected to be right so often, or nothing.

The expectation is of facts that are known already. Thresholds that were learned on such held on missing ones for 5 of
16 relations (Veseli et al., EMNLP Findings 2023): what goes into a knowledge base wants a sample checked by hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lmkbc.errors import InputError
from lmkbc.select.calibrated import Calibrated
from lmkbc.select.confidence import calibration_of
from lmkbc.select.curve import Point
from lmkbc.select.cutoffs import Cutoff
from lmkbc.select.rule import UNLIMITED, PerRelation, Rule
from lmkbc.types import CandidateSet, Prediction

NOTHING = Cutoff(threshold=2.0)
"""Keeps nothing, whatever the candidates score."""


@dataclass(frozen=True)
class AtPrecision(PerRelation):
    """A selector whose rules keep what promises a precision.

    usual: what selects where none is asked for; what it keeps of a query that is left empty here is withheld, which is
    not to say that there is none. reached: the relations that promise it, by every spelling -> from what confidence on.
    """

    usual: PerRelation = field(default_factory=lambda: PerRelation(NOTHING))
    reached: Mapping[str, Point] = field(default_factory=dict)

    def select(self, candidates: CandidateSet) -> Prediction:
        """Keep what is sure enough; an empty answer says whether that is because nothing is."""
        kept = super().select(candidates)
        if kept.failed or kept.objects or not self.usual.select(candidates).objects:
            return kept
        return replace(kept, withheld=True)


def at_precision(selector: PerRelation, precision: float) -> AtPrecision:
    """The selector that keeps, per relation, what promises a precision in (0, 1), by what tuning saw out of fold.

    A relation that does not promise it, or was not tuned, keeps nothing. InputError where none was tuned for it.
    """
    if not 0 < precision < 1:
        raise InputError(f"precision is {precision}: give a share between 0 and 1, as in 0.9")
    if not selector.curves:
        raise InputError(
            "a precision is promised by thresholds that know of confidence, and there are none for this edition and "
            "system: run lmkbc tune for both first"
        )
    reached = {name: point for name, curve in selector.curves.items() if (point := curve.at(precision))}
    rules: dict[str, Rule] = {}
    for name, point in reached.items():
        calibration = calibration_of(selector, name)
        inner = Cutoff(threshold=point.threshold, most=selector.curves[name].most or UNLIMITED)
        rules[name] = (
            Calibrated(inner=inner, weights=calibration.weights, habits=calibration.habits) if calibration else NOTHING
        )
    return AtPrecision(NOTHING, rules, selector.calibrations, selector.curves, selector, reached)
