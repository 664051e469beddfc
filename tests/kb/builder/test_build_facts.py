"""Facts: what a block's answers become, whatever a model wrote, and how sure they have to be."""

import pickle
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from bases import SOURCE, SPACE, answered, failed
from hypothesis import given
from hypothesis import strategies as st
from opened import recipe_of

from lmkbc import Rule
from lmkbc.kb.builder.facts import Maker, Tables
from lmkbc.select.selector import PerRelation
from lmkbc.testing import Candidate, CandidateSet, Nil, Query, Source, State
from tests.rules import rule_of

RELATIONS = {name: SPACE.relation(name) for name in ("CountryBordersCountry", "hasArea", "personHasCityOfDeath")}
MAKER = Maker(recipe_of({"component": "prior"}).select, RELATIONS, "run")
BORDERS = Query("Chad", "CountryBordersCountry", "Q657")
AREA, DEATH = Query("Chad", "hasArea"), Query("Chad", "personHasCityOfDeath")


def test_a_row_per_object_and_one_for_each_query_without() -> None:
    silent = CandidateSet(BORDERS, (), (State.ABSTAINED,), nothing=(Nil(0.75, SOURCE),))
    dropped = CandidateSet(BORDERS, (), (State.DROPPED,))
    faint = answered(BORDERS, ("Sudan", "Q1049", 0.25))
    sets = [
        answered(BORDERS, ("Libya", "Q1016", 0.875), ("Niger", None, 0.5), ("Mali", "Q912", 0.25)),
        answered(AREA, ("1,284,000.50", None, 1.0)),
        silent,
        dropped,
        faint,
        failed(AREA),
    ]
    tables = MAKER.tables([0, 0, 1, 2, 3, 4], sets)
    facts = tables.facts.select("subject_row", "subject_id", "relation", "property", "object", "object_id").rows()
    assert facts == [
        (0, "Q657", "country-borders", "P47", "Libya", "Q1016"),
        (0, "Q657", "country-borders", "P47", "Niger", None),
        (0, None, "area", "P2046", "1,284,000.50", None),
    ]
    assert tables.facts.select("literal", "unit", "confidence").rows() == [
        (None, None, 0.875),
        (None, None, 0.5),
        ("1284000.5", "km2", 1.0),
    ]
    assert tables.facts.select("sources", "model", "run", "calibrated").row(0) == (["model"], "model", "run", False)
    assert tables.nothing.select("subject_row", "reason", "confidence").rows() == [
        (1, "abstained", 0.75),
        (2, "dropped", None),
        (3, "not kept", None),
    ]
    assert tables.missing.select("subject_row", "relation", "reason").rows() == [(4, "area", "missing")]
    assert [frame.schema for frame in MAKER.tables([], [])] == [frame.schema for frame in tables]


@pytest.mark.parametrize(("text", "qid", "literal"), [("4", "7", "7"), ("4", "Q202", "4"), ("four", "Q202", None)])
def test_a_number_is_no_item(text: str, qid: str, literal: str | None) -> None:
    row = MAKER.tables([0], [answered(AREA, (text, qid, 1.0))]).facts.row(0, named=True)
    assert (row["object_id"], row["literal"], row["unit"]) == (None, literal, "km2" if literal else None)


def test_blocks_may_be_made_anywhere_and_of_any_size() -> None:
    sets = [answered(BORDERS, (name, None, 0.9)) for name in "abcdef"]
    whole = MAKER.tables([*range(6)], sets)
    sent = pickle.loads(pickle.dumps(MAKER))
    parts = [sent.tables([at, at + 1], sets[at : at + 2]) for at in (0, 2, 4)]
    assert all(one.equals(other) for one, other in zip(whole, Tables.together(parts), strict=True))


@given(st.text(), st.one_of(st.none(), st.text(max_size=6)), st.text(max_size=9))
def test_any_text_of_a_model_is_a_row(text: str, qid: str | None, source: str) -> None:
    found = CandidateSet(BORDERS, (Candidate(text + "\ud800", 0.9, (Source(source + "\udfff"),), qid),))
    row = MAKER.tables([0], [found]).facts.row(0, named=True)
    assert row["object"] == text + "\\ud800"
    assert row["object_id"] is None or row["object_id"] == qid
    assert row["literal"] is None


def literal(text: str) -> str | None:
    """The number of a fact whose object is a text."""
    (found,) = MAKER.tables([0], [answered(AREA, (text, None, 1.0))]).facts["literal"]
    return found  # type: ignore[no-any-return]


@given(st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-(10**20), max_value=10**20))
def test_numbers_keep_their_value(number: Decimal) -> None:
    written = literal(str(number))
    assert written is not None
    assert Decimal(written) == number
    assert not {"e", "E", "+"} & {*written}


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        ("1,234", "1234"),
        ("1e3", "1000"),
        ("-0.50", "-0.5"),
        ("-0", "0"),
        ("007", "7"),
        ("١٢", "12"),
        ("nan", None),
        ("inf", None),
        ("1e999999999", None),
        ("1e-999", None),
        ("9" * 200, None),
        ("four", None),
        ("", None),
        ("Q42", None),
    ],
)
def test_what_is_a_number(text: str, digits: str | None) -> None:
    assert literal(text) == digits


@pytest.mark.parametrize(
    ("text", "place"), [("1,284.50", "0.01"), ("12", "1"), ("1e3", "1000"), ("0", "1"), ("four", None)]
)
def test_a_number_is_as_precise_as_its_last_digit(text: str, place: str | None) -> None:
    assert MAKER.tables([0], [answered(AREA, (text, None, 1.0))]).facts["precision"].to_list() == [place]


def kept(found: CandidateSet, rule: Rule, least: float | None = None, calibration: Any = None) -> list[str]:
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
    assert rule_of("expected-f1").select(found).objects, (
        "the rule itself keeps some, since an empty answer is surely wrong"
    )
    assert kept(found, rule_of("expected-f1")) == facts
    calibration = rule_of("calibrated", inner=rule_of("cutoff", threshold=0.0), weights={"score": 1.0}).calibration
    assert kept(found, rule_of("cutoff", threshold=0.0), calibration=calibration) == facts


def test_scores_that_are_no_probabilities_have_no_floor() -> None:
    assert kept(of(0.03, 0.02), rule_of("cutoff", threshold=0.025)) == ["1"]


def test_the_likeliest_of_many_is_no_fact_where_no_object_is_likelier() -> None:
    assert kept(replace(of(0.75), nothing=(Nil(0.9, SOURCE),)), rule_of("expected-f1")) == []


def test_a_least_confidence_is_asked_of_every_fact() -> None:
    assert kept(of(0.9, 0.6, 0.4), rule_of("cutoff", threshold=0.3), 0.5) == ["1", "2"]
    assert kept(of(0.009, 0.004), rule_of("expected-f1"), 0.0) == [
        one.text for one in rule_of("expected-f1").select(of(0.009, 0.004)).objects
    ]


@pytest.mark.parametrize(
    ("query", "scores", "below"), [(BORDERS, (0.9, 0.6, 0.4), 2), (DEATH, (0.9, 0.4), 0), (DEATH, (0.4, 0.35), 1)]
)
def test_what_a_least_confidence_leaves_out_is_counted(query: Query, scores: tuple[float, ...], below: int) -> None:
    selector = replace(recipe_of({"component": "prior"}).select, general=rule_of("cutoff", threshold=0.3))
    made = Maker(selector, RELATIONS, "run", 0.7).tables([0, 1], [of(*scores, query=query), failed(query)])
    assert made.sums["below_least"].sum() == below


@pytest.mark.parametrize("query", [AREA, DEATH])
def test_of_what_there_is_one_the_best_is_kept(query: Query) -> None:
    assert kept(of(0.8, 0.9, 0.7, query=query), rule_of("cutoff", threshold=0.5)) == ["2"]
