"""Selectors decide what a run keeps of its candidates, by the rules of its relations, and how sure each object is.

Runs and tuning both ask `PerRelation.kept`, so that tuning scores what a run with the same rule would keep.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from lmkbc.scoring.matchers import number
from lmkbc.select.calibration import SUREST, Calibration, PrecisionCurve
from lmkbc.select.composed import AbstentionThreshold, Agreement
from lmkbc.select.expected_f1 import Calibrated, ExpectedF1
from lmkbc.select.narrowings import Narrowing
from lmkbc.select.ranking import Floats, Ranking
from lmkbc.select.rule import BatchSelector, Rule
from lmkbc.types import Candidate, CandidateSet, Prediction, grouped

Made = TypeVar("Made")


@dataclass(frozen=True)
class PerRelation(BatchSelector):
    """Selector with a rule per relation. general: the rule of all other relations.

    rules, calibrations: by every spelling of a relation in queries.
    calibrations: fitted by tuning for rules without a calibration.
    curves: the precision that confidences promise: by promise, then as rules are.
    narrowings: what keeps less than the rules do, in order.
    """

    general: Rule
    rules: Mapping[str, Rule] = field(default_factory=dict)
    calibrations: Mapping[str, Calibration] = field(default_factory=dict)
    curves: Mapping[str, Mapping[str, PrecisionCurve]] = field(default_factory=dict)
    narrowings: Sequence[Narrowing] = ()

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

    def narrowed(self, *narrowings: Narrowing) -> PerRelation:
        """Return the selector with further narrowings: those that choose anew first, the others in order behind."""
        return replace(self, narrowings=tuple(sorted((*self.narrowings, *narrowings), key=lambda one: not one.chooses)))

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
        for narrowing in self.narrowings:
            made = narrowing.applied(sets, made)
        return made

    def answer(self, candidates: CandidateSet, objects: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        """Return what stays of the objects that a rule keeps of a query's candidates, in order."""
        for narrowing in self.narrowings:
            objects = narrowing.left(candidates, objects)
        return objects

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
