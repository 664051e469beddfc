"""Confidence: the probability that a candidate is right, for every rule; and selectors that withhold answers.

They keep what promises a precision, or what no labelled row states.

The promise holds for facts that are already in the gold. Thresholds learned on such facts held for missing facts in
only 5 of 16 relations (Veseli et al., EMNLP Findings 2023). Check a sample by hand before facts enter a knowledge base.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from lmkbc.errors import InputError, OptionError
from lmkbc.run.statements import Statements
from lmkbc.scoring.matchers import number
from lmkbc.select.calibration import Calibration, Point
from lmkbc.select.composed import AbstentionThreshold
from lmkbc.select.cutoffs import Cutoff
from lmkbc.select.expected_f1 import Calibrated, ExpectedF1
from lmkbc.select.mutual import Mutual
from lmkbc.select.ranking import Floats, Ranking
from lmkbc.select.rule import UNLIMITED, Narrowed, PerRelation, Rule
from lmkbc.types import Candidate, CandidateSet, Prediction, grouped


@dataclass(frozen=True, slots=True)
class Confidence:
    """Probabilities that the candidates of a query are right.

    p: in [0, 1], in the order of `candidates`, which is the set's order. calibrated: whether tuning fitted p to known
    facts, or the rule reads the scores as probabilities; if not, p holds pooled scores, which only order candidates.
    """

    candidates: tuple[Candidate, ...]
    p: tuple[float, ...]
    calibrated: bool

    def of(self, kept: Candidate) -> float:
        """Return the confidence of a selected object: that of its candidate, whatever score the rule gave it.

        If a rule made a number that lies between its votes, use the vote with the nearest ratio to it.
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
        """Return the confidences of all selected objects."""
        if not kept:
            return []
        known = {(candidate.text, candidate.id): p for candidate, p in zip(self.candidates, self.p, strict=True)}
        return [known[one.text, one.id] if (one.text, one.id) in known else self.of(one) for one in kept]


def calibration_of(selector: PerRelation, relation: str) -> Calibration | None:
    """Return the calibration that tuning fitted for a relation, else that of its rule; None if there is neither."""
    return selector.calibrations.get(relation) or _calibration_in(selector.rules.get(relation, selector.general))


def _calibration_in(rule: Rule) -> Calibration | None:
    """Return the calibration of a rule that reads candidates unchanged; None for other rules."""
    inner = _inner(rule)
    return inner.calibration if isinstance(inner, Calibrated) else None


def _inner(rule: Rule) -> Rule:
    """Return the rule that reads the scores: itself, or the one within rules that leave scores to it."""
    return _inner(rule.inner) if isinstance(rule, AbstentionThreshold | Mutual) else rule


def confidences(selector: PerRelation, sets: Sequence[CandidateSet]) -> list[Confidence]:
    """Return the confidence of every candidate of pooled sets, one entry per set, in order.

    The sets are read as their rules read them. Unless a rule reads other queries, the confidences of a set do not
    depend on the other sets, so blocks may have any size.
    """
    sets = selector.read(sets)
    made: dict[int, Confidence] = {}
    for relation, places in grouped((one.query.relation, place) for place, one in enumerate(sets)).items():
        calibration = calibration_of(selector, relation)
        rule = selector.rules.get(relation, selector.general)
        probable = calibration is not None or isinstance(_inner(rule), ExpectedF1)
        chosen = [sets[place] for place in places]
        if calibration is None:
            columns = [tuple(min(max(one.score, 0.0), 1.0) for one in found.candidates) for found in chosen]
        else:
            table = calibration.probabilities(Ranking.of(chosen))
            columns = [_in_order(found, ranked) for found, ranked in zip(chosen, table, strict=True)]
        for place, found, p in zip(places, chosen, columns, strict=True):
            made[place] = Confidence(found.candidates, p, probable)
    return [made[row] for row in range(len(sets))]


def _in_order(candidates: CandidateSet, ranked: Floats) -> tuple[float, ...]:
    """Return values in the set's order. ranked: the values in the order of a ranking, best first."""
    scores = np.array([candidate.score for candidate in candidates.candidates])
    values = np.empty(len(scores))
    values[np.argsort(-scores, kind="stable")] = ranked[: len(scores)]
    return tuple(values.tolist())


NOTHING = Cutoff(threshold=2.0)
"""Rule that keeps nothing, whatever the scores."""
UNREACHED, UNSURE = "no confidence of its relation promises the precision", "no object is sure enough"
"""Reasons for a withheld answer."""


@dataclass(frozen=True)
class AtPrecision(Narrowed):
    """Selector whose rules keep the facts that reach a promised precision.

    If the usual selector keeps objects and this one keeps none, the answer is withheld, and not empty. reached: the
    relations that reach the precision, by every spelling, with their points on the curve.
    """

    reached: Mapping[str, Point] = field(default_factory=dict)

    def select_all(self, sets: Sequence[CandidateSet]) -> list[Prediction]:
        """Keep the objects that are sure enough, and give the reason if an answer is withheld."""
        sets = self.read(sets)
        kept = self.keep(sets)
        empty = [place for place, made in enumerate(kept) if not made.objects and not made.failed]
        for place, usual in zip(empty, self.usual.keep([sets[place] for place in empty]), strict=True):
            if usual.objects:
                reason = UNSURE if usual.query.relation in self.reached else UNREACHED
                kept[place] = replace(kept[place], withheld=reason)
        return kept


def check_precision(precision: float) -> None:
    """Raise InputError if a precision is not between 0 and 1."""
    if not 0 < precision < 1:
        raise OptionError("precision", f"is {precision:g}: give a share between 0 and 1, as in 0.9")


def at_precision(selector: PerRelation, precision: float) -> AtPrecision:
    """Return the selector that keeps, per relation, the facts that promise a precision in (0, 1) out of fold.

    A relation that does not reach it, or was not tuned, keeps nothing. Raise InputError if no relation has a curve.
    """
    check_precision(precision)
    if not selector.curves:
        raise InputError(
            "a precision needs thresholds with confidences, and none were tuned for this edition and system: run "
            "lmkbc tune for both first"
        )
    reached: dict[str, Point] = {}
    rules: dict[str, Rule] = {}
    for name, curve in selector.curves.items():
        point, calibration = curve.at(precision), calibration_of(selector, name)
        if point is not None and calibration is not None:
            reached[name] = point
            inner = Cutoff(threshold=point.threshold, max=curve.max or UNLIMITED)
            rules[name] = Calibrated(inner=inner, weights=calibration.weights, label_priors=calibration.label_priors)
    return AtPrecision(NOTHING, rules, selector.calibrations, selector.curves, reached, usual=selector)


STATED = "labelled rows state all that would be kept"
"""Reason for a withheld answer."""


@dataclass(frozen=True)
class Unstated(Narrowed):
    """Selector that leaves out what labelled rows state, after the usual selector's choice.

    An answer that loses all its objects is withheld, and not empty.
    """

    statements: Statements = field(kw_only=True)

    @classmethod
    def of(cls, usual: PerRelation, statements: Statements) -> Unstated:
        """Return the selector, with the calibrations of the usual one."""
        return cls(usual.general, usual.rules, usual.calibrations, usual.curves, usual=usual, statements=statements)

    def select_all(self, sets: Sequence[CandidateSet]) -> list[Prediction]:
        """Return the usual choice without what labelled rows state."""
        return [self._left(made) for made in self.usual.select_all(sets)]

    def _left(self, made: Prediction) -> Prediction:
        left = tuple(one for one in made.objects if not self.statements.stated_by(made.query, one))
        return replace(made, objects=left, withheld=STATED if made.objects and not left else made.withheld)
