"""Confidence: how likely each candidate is right, whatever rule decides which of them are kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lmkbc.scoring.matchers import number
from lmkbc.select.abstention import AbstentionThreshold
from lmkbc.select.calibrated import Calibrated
from lmkbc.select.calibration import Calibration
from lmkbc.select.ranking import Floats, Ranking
from lmkbc.select.rule import PerRelation, Rule
from lmkbc.types import Candidate, CandidateSet


@dataclass(frozen=True, slots=True)
class Confidence:
    """How likely the candidates of one query are right.

    p: in [0, 1], in the order of `candidates`, which is the set's own. calibrated: whether these are probabilities that
    tuning fitted to known facts; else they are the pooled scores, which order candidates and promise nothing.
    """

    candidates: tuple[Candidate, ...]
    p: tuple[float, ...]
    calibrated: bool

    def of(self, kept: Candidate) -> float:
        """The confidence of an object that a rule kept: its candidate's, whatever score the rule gave it.

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
        """The confidences of all that a rule kept."""
        if not kept:
            return []
        own = {(candidate.text, candidate.id): p for candidate, p in zip(self.candidates, self.p, strict=True)}
        return [own[one.text, one.id] if (one.text, one.id) in own else self.of(one) for one in kept]


def calibration_of(selector: PerRelation, relation: str) -> Calibration | None:
    """What calibrates a relation's candidates: what tuning fitted for it, else its rule's own; None where none does."""
    return selector.calibrations.get(relation) or _own(selector.rules.get(relation, selector.general))


def _own(rule: Rule) -> Calibration | None:
    """The calibration of a rule that reads the candidates as they are."""
    if isinstance(rule, AbstentionThreshold):
        return _own(rule.inner)
    return rule.calibration if isinstance(rule, Calibrated) else None


def confidences(selector: PerRelation, sets: Sequence[CandidateSet]) -> list[Confidence]:
    """The confidence of every candidate of pooled sets, one entry per set in their order; arrays per relation.

    What a set is asked beside does not change its confidences, so that blocks may be of any size.
    """
    rows: defaultdict[str, list[int]] = defaultdict(list)
    for row, candidates in enumerate(sets):
        rows[candidates.query.relation].append(row)
    made: dict[int, Confidence] = {}
    for relation, places in rows.items():
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
    """What stands in a ranking's order, best first, in that of the set."""
    scores = np.array([candidate.score for candidate in candidates.candidates])
    own = np.empty(len(scores))
    own[np.argsort(-scores, kind="stable")] = ranked[: len(scores)]
    return tuple(own.tolist())
