"""Tuning as tests call it, and selectors that keep less than their rules do."""

from collections.abc import Mapping, Sequence
from typing import Any

from lmkbc import Edition, Relation
from lmkbc.run.submission import answers
from lmkbc.select.narrowings import Narrowing
from lmkbc.select.selector import PerRelation
from lmkbc.testing import Candidate, CandidateSet, Example, Prediction, Query
from lmkbc.tune.learn import tune
from lmkbc.tune.tuning_set import TuningOptions, TuningSet
from tests.rules import rule_of

LOST = ["no answer was read"]
"""What no gold matches."""

PLAIN = PerRelation(rule_of("cutoff", threshold=0.0))


def tuned(
    sets: Sequence[CandidateSet],
    examples: Sequence[Example],
    edition: Edition,
    *,
    relations: Mapping[str, Relation],
    selector: PerRelation = PLAIN,
    report: Any = lambda *_: None,
    **options: Any,
) -> Any:
    how = TuningOptions(**options)
    data = TuningSet(sets, examples, edition, relations, selector, how)
    return tune(data, report=report)


def official(predictions: Mapping[Query, Prediction], examples: Sequence[Example], edition: Edition) -> Any:
    """The edition's table of predictions. A failed query is wrong, even if its gold is empty."""
    gold = {one.query.pairs[0]: edition.gold_column(one) for one in examples}
    given = {query.pairs[0]: LOST if one.failed else answers(edition, one) for query, one in predictions.items()}
    return edition.metric.evaluate(given, gold)


class First(Narrowing):
    """A run that keeps the first object of what a rule keeps, as a limit on answers would."""

    def left(self, candidates: CandidateSet, objects: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        return objects[:1]


class Without(Narrowing):
    """A run that leaves out one object, wherever it stands."""

    def left(self, candidates: CandidateSet, objects: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        return tuple(one for one in objects if one.text != "7")


SELECTORS = (PLAIN, PLAIN.narrowed(First()), PLAIN.narrowed(Without()))
