"""At a precision: in place of each relation's rule, what is expected to be right so often, or nothing.

The expectation is of facts that are known already. Thresholds that were learned on such held on missing ones for 5 of
16 relations (Veseli et al., EMNLP Findings 2023): what goes into a knowledge base wants a sample checked by hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from lmkbc.errors import InputError, OptionError
from lmkbc.select.calibrated import Calibrated
from lmkbc.select.confidence import calibration_of
from lmkbc.select.curve import Point
from lmkbc.select.cutoffs import Cutoff
from lmkbc.select.rule import UNLIMITED, PerRelation, Rule
from lmkbc.types import CandidateSet, Prediction

NOTHING = Cutoff(threshold=2.0)
"""Keeps nothing, whatever the candidates score."""
UNREACHED, UNSURE = "no confidence of its relation promises the precision", "no object is sure enough"
"""Why an answer is withheld."""


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
        (kept,) = self.select_all([candidates])
        return kept

    def select_all(self, sets: Sequence[CandidateSet]) -> list[Prediction]:
        """The same for many queries, in their order."""
        kept = super().select_all(sets)
        empty = [place for place, made in enumerate(kept) if not made.objects and not made.failed]
        for place, usual in zip(empty, self.usual.select_all([sets[place] for place in empty]), strict=True):
            if usual.objects:
                reason = UNSURE if usual.query.relation in self.reached else UNREACHED
                kept[place] = replace(kept[place], withheld=reason)
        return kept


def check_precision(precision: float) -> None:
    """Raise InputError for a precision that no rule can promise."""
    if not 0 < precision < 1:
        raise OptionError("precision", f"is {precision:g}: give a share between 0 and 1, as in 0.9")


def at_precision(selector: PerRelation, precision: float) -> AtPrecision:
    """The selector that keeps, per relation, what promises a precision in (0, 1), by what tuning saw out of fold.

    A relation that does not promise it, or was not tuned, keeps nothing. InputError where none was tuned for it.
    """
    check_precision(precision)
    if not selector.curves:
        raise InputError(
            "a precision is promised by thresholds that know of confidence, and none were tuned for this edition and "
            "system: run lmkbc tune for both first"
        )
    reached: dict[str, Point] = {}
    rules: dict[str, Rule] = {}
    for name, curve in selector.curves.items():
        point, calibration = curve.at(precision), calibration_of(selector, name)
        if point is not None and calibration is not None:
            reached[name] = point
            inner = Cutoff(threshold=point.threshold, most=curve.most or UNLIMITED)
            rules[name] = Calibrated(inner=inner, weights=calibration.weights, habits=calibration.habits)
    return AtPrecision(NOTHING, rules, selector.calibrations, selector.curves, selector, reached)
