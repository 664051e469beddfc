"""How sure a fact has to be, beside what its rule keeps.

A rule that scores best may keep an object of which it is hardly sure, where a relation always has one: an empty answer
would be wrong for certain. Among facts such an object is an error like any other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lmkbc.select.confidence import Confidence
from lmkbc.select.expected_f1 import ExpectedF1
from lmkbc.select.rule import AT_ONCE, PerRelation
from lmkbc.types import CandidateSet, Prediction

KEEP_ALL, KEEP_NONE = 0.0, 2.0
LEAST = 0.1
"""Probability below which no object is a fact: in a long list of unlikely ones, expected F1 would keep them all."""


def floors(
    selector: PerRelation, sets: Sequence[CandidateSet], kept: Sequence[Prediction], sure: Sequence[Confidence]
) -> list[float]:
    """Return the least confidence of a fact of each query: what expected F1 keeps of its candidates, and `LEAST`.

    kept: what the rules keep of each. Confidences that are no probabilities have no floor: they order facts, and
    promise nothing.
    """
    least = [KEEP_ALL] * len(sets)
    places = [
        at
        for at, (found, made, own) in enumerate(zip(sets, kept, sure, strict=True))
        if made.objects and (own.calibrated or _reads_probabilities(selector, found))
    ]
    for first in range(0, len(places), AT_ONCE):
        some = places[first : first + AT_ONCE]
        p = np.zeros((len(some), max(len(sure[at].p) for at in some)))
        for row, at in zip(p, some, strict=True):
            row[: len(sure[at].p)] = sorted(sure[at].p, reverse=True)
        best = ExpectedF1().best(p, np.zeros(len(some)))
        for row, at, count in zip(p, some, best, strict=True):
            least[at] = max(LEAST, float(row[count - 1])) if count else KEEP_NONE
    return least


def _reads_probabilities(selector: PerRelation, found: CandidateSet) -> bool:
    """Return whether the rule of a query takes scores for probabilities."""
    return isinstance(selector.rules.get(found.query.relation, selector.general), ExpectedF1)
