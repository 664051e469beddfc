"""Confidence: how likely each candidate is right, whatever rule keeps it; and what promises a precision, or nothing.

A promised precision is expected of facts that are known already. Thresholds that were learned on such held on missing
ones for 5 of 16 relations (Veseli et al., EMNLP Findings 2023): what goes into a knowledge base wants a sample checked
by hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from lmkbc.errors import InputError, OptionError
from lmkbc.groups import grouped
from lmkbc.scoring.matchers import number
from lmkbc.select.calibration import Calibration, Point
from lmkbc.select.composed import AbstentionThreshold
from lmkbc.select.cutoffs import Cutoff
from lmkbc.select.expected_f1 import Calibrated
from lmkbc.select.mutual import Mutual
from lmkbc.select.ranking import Floats, Ranking
from lmkbc.select.rule import UNLIMITED, PerRelation, Rule
from lmkbc.types import Candidate, CandidateSet, Prediction


@dataclass(frozen=True, slots=True)
class Confidence:
    """Probabilities that the candidates of a query are right.

    p: in [0, 1], in the order of `candidates`, which is the set's own. calibrated: whether these are probabilities that
    tuning fitted to known facts; else they are the pooled scores, which order candidates and promise nothing.
    """

    candidates: tuple[Candidate, ...]
    p: tuple[float, ...]
    calibrated: bool

    def of(self, kept: Candidate) -> float:
        """Return the confidence of an object that a rule kept: its candidate's, whatever score the rule gave it.

        A number that a rule put between its votes has the confidence of the vote that is nearest as a ratio.
        """
        for candidate, p in zip(self.candidates, self.p, strict=True):
            if (candidate.text, candidate.id) == (kept.text, kept.id):
                return p
        value = number(kept.text)
        votes = [(number(candidate.text), p) for candidate, p in zip(self.candidates, self.p, strict=True)]
        ratios = [
            (max(vote / value, value / vote), -p)
            for vote, p in votes
            if vote is not None and value is not None and vote * value > 0
        ]
        return -min(ratios)[1] if ratios else min(max(kept.score, 0.0), 1.0)

    def of_each(self, kept: Sequence[Candidate]) -> list[float]:
        """Return the confidences of all that a rule kept."""
        if not kept:
            return []
        own = {(candidate.text, candidate.id): p for candidate, p in zip(self.candidates, self.p, strict=True)}
        return [own[one.text, one.id] if (one.text, one.id) in own else self.of(one) for one in kept]


def calibration_of(selector: PerRelation, relation: str) -> Calibration | None:
    """Return what tuning fitted for a relation, else its rule's own calibration; None if neither is there."""
    return selector.calibrations.get(relation) or _own(selector.rules.get(relation, selector.general))


def _own(rule: Rule) -> Calibration | None:
    """Return the calibration of a rule that reads the candidates as they are."""
    if isinstance(rule, AbstentionThreshold | Mutual):
        return _own(rule.inner)
    return rule.calibration if isinstance(rule, Calibrated) else None


def confidences(selector: PerRelation, sets: Sequence[CandidateSet]) -> list[Confidence]:
    """Return the confidence of every candidate of pooled sets, one entry per set in their order; arrays per relation.

    The sets are read as their rules read them. Where none reads other queries, what a set is asked beside does not
    change its confidences, so that blocks may be of any size.
    """
    sets = selector.read(sets)
    made: dict[int, Confidence] = {}
    for relation, places in grouped((one.query.relation, place) for place, one in enumerate(sets)).items():
        calibration = calibration_of(selector, relation)
        chosen = [sets[place] for place in places]
        if calibration is None:
            own = [tuple(min(max(one.score, 0.0), 1.0) for one in found.candidates) for found in chosen]
        else:
            table = calibration.probabilities(Ranking.of(chosen))
            own = [_in_order(found, ranked) for found, ranked in zip(chosen, table, strict=True)]
        for place, found, p in zip(places, chosen, own, strict=True):
            made[place] = Confidence(found.candidates, p, calibration is not None)
    return [made[row] for row in range(len(sets))]


def _in_order(candidates: CandidateSet, ranked: Floats) -> tuple[float, ...]:
    """Return what stands in a ranking's order, best first, in that of the set."""
    scores = np.array([candidate.score for candidate in candidates.candidates])
    own = np.empty(len(scores))
    own[np.argsort(-scores, kind="stable")] = ranked[: len(scores)]
    return tuple(own.tolist())


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

    @property
    def reads_others(self) -> bool:
        """Return whether the usual rules read candidates of other queries: confidences are of what they read."""
        return self.usual.reads_others

    def read(self, sets: Sequence[CandidateSet]) -> Sequence[CandidateSet]:
        """Return the sets as the usual rules are to see them."""
        return self.usual.read(sets)

    def select_all(self, sets: Sequence[CandidateSet]) -> list[Prediction]:
        """Keep what is sure enough; an empty answer says whether that is because nothing is."""
        sets = self.read(sets)
        kept = self.keep(sets)
        empty = [place for place, made in enumerate(kept) if not made.objects and not made.failed]
        for place, usual in zip(empty, self.usual.keep([sets[place] for place in empty]), strict=True):
            if usual.objects:
                reason = UNSURE if usual.query.relation in self.reached else UNREACHED
                kept[place] = replace(kept[place], withheld=reason)
        return kept


def check_precision(precision: float) -> None:
    """Raise InputError for a precision that no rule can promise."""
    if not 0 < precision < 1:
        raise OptionError("precision", f"is {precision:g}: give a share between 0 and 1, as in 0.9")


def at_precision(selector: PerRelation, precision: float) -> AtPrecision:
    """Return the selector that keeps, per relation, what promises a precision in (0, 1) out of fold.

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
            inner = Cutoff(threshold=point.threshold, max=curve.max or UNLIMITED)
            rules[name] = Calibrated(inner=inner, weights=calibration.weights, label_priors=calibration.label_priors)
    return AtPrecision(NOTHING, rules, selector.calibrations, selector.curves, selector, reached)
