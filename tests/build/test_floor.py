"""How sure a fact has to be: what a rule keeps of hardly likely objects is no fact."""

from __future__ import annotations

from dataclasses import replace

import pytest
from bases import SOURCE, SPACE, answered
from opened import recipe_of

from lmkbc.build.facts import Maker
from lmkbc.select.calibration import Calibration
from lmkbc.select.cutoffs import Cutoff
from lmkbc.select.expected_f1 import ExpectedF1
from lmkbc.select.rule import PerRelation, Rule
from lmkbc.types import CandidateSet, Nil, Query

NAMES = ("CountryBordersCountry", "hasArea", "personHasCityOfDeath")
RELATIONS = {name: SPACE.relation(name) for name in NAMES}
BORDERS, AREA, DEATH = (Query("Chad", name) for name in NAMES)


def kept(
    found: CandidateSet, rule: Rule, least: float | None = None, calibration: Calibration | None = None
) -> list[str]:
    """The objects of the facts of a query."""
    calibrations = {found.query.relation: calibration} if calibration else {}
    selector = replace(recipe_of({"component": "prior"}).select, general=rule, calibrations=calibrations)
    assert isinstance(selector, PerRelation)
    tables = Maker(selector, RELATIONS, "run", least).tables([0], [found])
    assert len(tables.facts) or tables.nothing["reason"].to_list() == ["not kept"]
    return tables.facts["object"].to_list()


def of(*scores: float, query: Query = BORDERS) -> CandidateSet:
    """Candidates of these scores, where hardly anything says that there is none."""
    found = answered(query, *((f"{at}", f"Q{at}", score) for at, score in enumerate(scores, start=1)))
    return replace(found, nothing=(Nil(1e-6, SOURCE),))


@pytest.mark.parametrize(
    ("scores", "facts"),
    [
        ((0.9, 0.8), ["1", "2"]),
        ((0.9, 0.7, 0.69), ["1", "2"]),
        ((0.6,), []),
        ((0.4, 0.4, 0.4), []),
        ((0.08,) * 60, []),
    ],
)
def test_of_probabilities_what_is_sure_is_a_fact(scores: tuple[float, ...], facts: list[str]) -> None:
    found = of(*scores)
    assert ExpectedF1().select(found).objects, "the rule itself keeps some, since an empty answer is surely wrong"
    assert kept(found, ExpectedF1()) == facts
    assert kept(found, Cutoff(threshold=0.0), calibration=Calibration(weights={"score": 1.0})) == facts


def test_scores_that_are_no_probabilities_have_no_floor() -> None:
    assert kept(of(0.03, 0.02), Cutoff(threshold=0.025)) == ["1"]


def test_the_likeliest_of_many_is_no_fact_where_no_object_is_likelier() -> None:
    found = replace(of(0.75), nothing=(Nil(0.9, SOURCE),))
    assert kept(found, ExpectedF1()) == []


def test_a_least_confidence_is_asked_of_every_fact() -> None:
    assert kept(of(0.9, 0.6, 0.4), Cutoff(threshold=0.3), 0.5) == ["1", "2"]
    assert kept(of(0.009, 0.004), ExpectedF1(), 0.0) == [
        one.text for one in ExpectedF1().select(of(0.009, 0.004)).objects
    ]


@pytest.mark.parametrize("query", [AREA, DEATH])
def test_of_what_there_is_one_the_best_is_kept(query: Query) -> None:
    assert kept(of(0.8, 0.9, 0.7, query=query), Cutoff(threshold=0.5)) == ["2"]
