"""Confidence: the probability that a candidate is right, for every rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lmkbc.scoring.matchers import number
from lmkbc.select.expected_f1 import ExpectedF1
from lmkbc.select.ranking import Floats, Ranking
from lmkbc.select.selector import PerRelation, reading_scores
from lmkbc.types import Candidate, CandidateSet, grouped


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


def confidences(selector: PerRelation, sets: Sequence[CandidateSet]) -> list[Confidence]:
    """Return the confidence of every candidate of pooled sets, one entry per set, in order.

    The sets are read as their rules read them. Unless a rule reads other queries, the confidences of a set do not
    depend on the other sets, so blocks may have any size.
    """
    sets = selector.read(sets)
    made: dict[int, Confidence] = {}
    for relation, places in grouped((one.query.relation, place) for place, one in enumerate(sets)).items():
        calibration = selector.calibration(relation)
        probable = calibration is not None or isinstance(reading_scores(selector.rule(relation)), ExpectedF1)
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
