"""Tuning as tests call it, and selectors that keep less than their rules do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmkbc import Edition, Relation
from lmkbc.progress import silent
from lmkbc.select.selector import PerRelation
from lmkbc.tune.learn import Tuned, tune
from lmkbc.tune.tuning_set import TuningOptions, TuningSet
from lmkbc.types import Candidate, CandidateSet, Example, Query
from tests.rules import rule_of

PLAIN = PerRelation(rule_of("cutoff", threshold=0.0))


def tuned(
    sets: Sequence[CandidateSet],
    examples: Sequence[Example],
    edition: Edition,
    *,
    relations: Mapping[str, Relation],
    selector: PerRelation = PLAIN,
    report: Any = silent,
    **options: Any,
) -> Tuned:
    how = TuningOptions(**options)
    data = TuningSet(sets, examples, edition, relations, selector, how)
    return tune(data, report=report)


@dataclass(frozen=True)
class First(PerRelation):
    """A run that keeps the first object of what a rule keeps, as a limit on answers would."""

    def answer(self, query: Query, objects: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        return super().answer(query, objects)[:1]


@dataclass(frozen=True)
class Without(PerRelation):
    """A run that leaves out one object, wherever it stands."""

    def answer(self, query: Query, objects: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        return tuple(one for one in super().answer(query, objects) if one.text != "7")


SELECTORS = (PLAIN, First(PLAIN.general), Without(PLAIN.general))
