"""Selectors decide what a run keeps of its candidates, by the rules of its relations, and how sure each object is.

Runs and tuning both ask `PerRelation.kept`, so that tuning scores what a run with the same rule would keep. Two
selectors keep less than a usual one: what promises a precision, or what no labelled row states.

The promise holds for facts that are already in the gold. Thresholds learned on such facts held for missing facts in
only 5 of 16 relations (Veseli et al., EMNLP Findings 2023). Check a sample by hand before facts enter a knowledge base.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from lmkbc.scoring.matchers import number
from lmkbc.select.calibration import SUREST, Calibration, Point, PrecisionCurve
from lmkbc.select.composed import AbstentionThreshold, Agreement
from lmkbc.select.cutoffs import Cutoff
from lmkbc.select.expected_f1 import Calibrated, ExpectedF1
from lmkbc.select.ranking import Floats, Ranking
from lmkbc.select.rule import UNLIMITED, BatchSelector, Rule
from lmkbc.session.statements import Statements
from lmkbc.types import Candidate, CandidateSet, Prediction, Query, grouped

Made = TypeVar("Made")


@dataclass(frozen=True)
class PerRelation(BatchSelector):
    """Selector with a rule per relation. general: the rule of all other relations.

    rules, calibrations, curves, most: by every spelling of a relation in queries.
    calibrations: fitted by tuning for rules without a calibration.
    curves: the precision that confidences promise.
    most: the maximum number of objects of an answer.
    """

    general: Rule
    rules: Mapping[str, Rule] = field(default_factory=dict)
    calibrations: Mapping[str, Calibration] = field(default_factory=dict)
    curves: Mapping[str, PrecisionCurve] = field(default_factory=dict)
    most: Mapping[str, int] = field(default_factory=dict)

    @property
    def reads_others(self) -> bool:
        """Return whether a rule reads candidates of other queries, so that selection needs the whole run."""
        return any(rule.reads_others for rule in (self.general, *self.rules.values()))

    @property
    def reads_verification(self) -> bool:
        """Return whether a rule or a calibration uses verification scores."""
        return any(rule.reads_verification for rule in (self.general, *self.rules.values())) or any(
            calibration.reads_verification for calibration in self.calibrations.values()
        )

    def rule(self, relation: str) -> Rule:
        """Return the rule of a relation."""
        return self.rules.get(relation, self.general)

    def calibration(self, relation: str) -> Calibration | None:
        """Return the calibration that tuning fitted for a relation, else that of its rule; None if there is neither."""
        inner = reading_scores(self.rule(relation))
        return self.calibrations.get(relation) or (inner.calibration if isinstance(inner, Calibrated) else None)

    def under(self, rules: Mapping[str, Rule]) -> PerRelation:
        """Return the selector with some rules replaced."""
        return replace(self, rules={**self.rules, **rules})

    def select_all(self, sets: Sequence[CandidateSet]) -> list[Prediction]:
        """Return the kept objects of each query by its relation's rule, in order. sets: of a whole run."""
        return self.select_read(self.read(sets))

    def read(self, sets: Sequence[CandidateSet]) -> Sequence[CandidateSet]:
        """Return the sets of a whole run as their rules use them, in order."""
        return self._each(sets, lambda rule, some: rule.read(some, sets)) if self.reads_others else sets

    def select_read(self, sets: Sequence[CandidateSet]) -> list[Prediction]:
        """Return the kept objects of each query, in order. sets: some of those from `read`."""
        return self._each(sets, self.kept)

    def kept(self, rule: Rule, sets: Sequence[CandidateSet]) -> list[Prediction]:
        """Return what is kept of each set by one rule, in order. sets: from `read`."""
        made = rule.select_all(sets)
        return [replace(one, objects=self.answer(one.query, one.objects)) for one in made]

    def answer(self, query: Query, objects: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        """Return the answer to a query: what stays of the objects that its rule keeps, in order; here the first."""
        return objects[: self.most.get(query.relation)]

    def _each(
        self, sets: Sequence[CandidateSet], of: Callable[[Rule, Sequence[CandidateSet]], Sequence[Made]]
    ) -> list[Made]:
        """Apply a function to the sets of each rule at once, and return the results in the order of the sets."""
        keys = [relation if (relation := one.query.relation) in self.rules else "" for one in sets]
        made: dict[int, Made] = {}
        for relation, places in grouped((relation, place) for place, relation in enumerate(keys)).items():
            made.update(zip(places, of(self.rule(relation), [sets[place] for place in places]), strict=True))
        return [made[place] for place in range(len(sets))]


def reading_scores(rule: Rule) -> Rule:
    """Return the rule that reads the scores: itself, or the one within rules that leave scores to it."""
    return reading_scores(rule.inner) if isinstance(rule, AbstentionThreshold | Agreement) else rule


@dataclass(frozen=True, slots=True)
class Confidence:
    """Probabilities that the candidates of a query are right.

    p: in [0, 1], in the order of `candidates`, which is the set's order. calibrated: whether tuning fitted p to known
    facts, or the rule reads the scores as probabilities. If not, p holds pooled scores; shares of samples are
    shrunk (see `Ranking.shares`).
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
        return -min(ratios)[1] if ratios else min(max(kept.score, 0.0), SUREST if self.calibrated else 1.0)


def confidences(selector: PerRelation, sets: Sequence[CandidateSet]) -> list[Confidence]:
    """Return the confidence of every candidate of pooled sets, one entry per set, in order.

    The sets are read as their rules read them. Unless a rule reads other queries, the confidences of a set do not
    depend on the other sets, so blocks may have any size.
    """
    sets = selector.read(sets)
    made: dict[int, Confidence] = {}
    for relation, places in grouped((one.query.relation, place) for place, one in enumerate(sets)).items():
        calibration = selector.calibration(relation)
        reads_probabilities = isinstance(reading_scores(selector.rule(relation)), ExpectedF1)
        chosen = [sets[place] for place in places]
        ranking = Ranking.of(chosen)
        if calibration is not None:
            table = calibration.probabilities(ranking)
        else:
            table = np.minimum(ranking.scores, SUREST) if reads_probabilities else ranking.shares
        for place, found, ranked in zip(places, chosen, table, strict=True):
            p = _in_order(found, ranked)
            made[place] = Confidence(found.candidates, p, calibration is not None or reads_probabilities)
    return [made[row] for row in range(len(sets))]


def _in_order(candidates: CandidateSet, ranked: Floats) -> tuple[float, ...]:
    """Return values in the set's order. ranked: the values in the order of a ranking, best first."""
    scores = np.array([candidate.score for candidate in candidates.candidates])
    values = np.empty(len(scores))
    values[np.argsort(-scores, kind="stable")] = ranked[: len(scores)]
    return tuple(values.tolist())


@dataclass(frozen=True)
class Narrowed(PerRelation):
    """Selector that keeps less than a usual one. usual: that selector, which also says how sets are read.

    If the usual selector keeps objects and this one keeps none, the answer is withheld, and not empty.
    """

    usual: PerRelation = field(kw_only=True)

    @property
    def reads_others(self) -> bool:
        """Return whether the usual rules read candidates of other queries; confidences then depend on these too."""
        return self.usual.reads_others

    def read(self, sets: Sequence[CandidateSet]) -> Sequence[CandidateSet]:
        """Return the sets as the usual rules read them."""
        return self.usual.read(sets)

    def answer(self, query: Query, objects: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        """Return what the usual selector leaves of the objects that a rule keeps."""
        return self.usual.answer(query, objects)

    @abstractmethod
    def reason(self, query: Query) -> str:
        """Return why the answer to a query is withheld."""

    def select_read(self, sets: Sequence[CandidateSet]) -> list[Prediction]:
        """Return the kept objects of each query, with the reason if an answer is withheld."""
        made = super().select_read(sets)
        empty = [place for place, one in enumerate(made) if not one.objects and not one.failed]
        for place, usual in zip(empty, self.usual.select_read([sets[place] for place in empty]), strict=True):
            reason = self.reason(usual.query) if usual.objects else usual.withheld
            made[place] = replace(made[place], withheld=reason)
        return made


NOTHING = Cutoff(threshold=2.0)
"""Rule that keeps nothing, whatever the scores."""
UNREACHED, UNSURE = "no confidence of its relation promises the precision", "no object is sure enough"
STATED = "labelled rows state all that would be kept"
"""Reasons for a withheld answer."""


@dataclass(frozen=True)
class AtPrecision(Narrowed):
    """Selector whose rules keep the facts that reach a promised precision.

    reached: the relations that reach the precision, by every spelling, with their points on the curve.
    """

    reached: Mapping[str, Point] = field(kw_only=True)

    def reason(self, query: Query) -> str:
        """Return whether the relation does not reach the precision, or its objects are not sure enough."""
        return UNSURE if query.relation in self.reached else UNREACHED


def surest(curves: Collection[PrecisionCurve], share: float) -> float:
    """Return the highest precision at which relations keep a share of the recall that they have without a threshold.

    Recall is the mean over relations. The precision is 0 if there are no curves.
    """

    def recall(precision: float) -> float:
        return math.fsum(point.recall for curve in curves if (point := curve.at(precision)))

    promised = {precision for curve in curves for precision in curve.precision}
    return max((precision for precision in promised if recall(precision) >= share * recall(0.0)), default=0.0)


def at_precision(selector: PerRelation, precision: float) -> AtPrecision:
    """Return the selector that keeps, per relation, the facts that promise a precision in (0, 1) out of fold.

    A relation that does not reach it, or was not tuned, keeps nothing.
    """
    reached: dict[str, Point] = {}
    rules: dict[str, Rule] = {}
    for name, curve in selector.curves.items():
        point, calibration = curve.at(precision), selector.calibration(name)
        if point is not None and calibration is not None:
            reached[name] = point
            rules[name] = Calibrated.by(calibration, Cutoff(threshold=point.threshold, max=curve.max or UNLIMITED))
    return AtPrecision(NOTHING, rules, selector.calibrations, selector.curves, usual=selector, reached=reached)


@dataclass(frozen=True)
class Unstated(Narrowed):
    """Selector that leaves out what labelled rows state, after the usual selector's choice."""

    statements: Statements = field(kw_only=True)

    @classmethod
    def of(cls, usual: PerRelation, statements: Statements) -> Unstated:
        """Return the selector, with the rules and calibrations of the usual one."""
        return cls(usual.general, usual.rules, usual.calibrations, usual.curves, usual=usual, statements=statements)

    def answer(self, query: Query, objects: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        """Return the usual answer without what labelled rows state."""
        return tuple(one for one in super().answer(query, objects) if not self.statements.stated_by(query, one))

    def reason(self, query: Query) -> str:  # noqa: ARG002
        """Return that labelled rows state everything."""
        return STATED
