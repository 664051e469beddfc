"""Facts that train states from the other side: nothing else is touched."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from space import SPACE

from lmkbc.select.other_side import TrainSides
from lmkbc.testing import Candidate, CandidateSet, Example, GoldObject, Query
from tests.candidates import candidate_set, sources

BORDERS, SPOUSE, RIVERS = "CountryBordersCountry", "PersonHasSpouse", "RiverBasinsCountry"
RELATIONS = {name: SPACE.relation(name) for name in (BORDERS, SPOUSE, RIVERS)}


def found(subject: str, relation: str = BORDERS, id_: str | None = None, **scores: float) -> CandidateSet:
    named = [Candidate(text, score, sources("m#0"), by_model=(("m", score),)) for text, score in scores.items()]
    return candidate_set(Query(subject, relation, id_), named)


def scores(candidates: CandidateSet) -> dict[str, float]:
    return {one.text: one.score for one in candidates.candidates}


def row(subject: str, *objects: str, relation: str = BORDERS) -> Example:
    return Example(Query(subject, relation), tuple(GoldObject(names=(f"the {name}", name)) for name in objects))


def test_bayes_rule_with_what_is_counted_beforehand() -> None:
    """One row says nothing of how often sides agree: 9 facts of 10 are on both, and 1 pair of 100 is a fact."""
    read = TrainSides({"train": [row("Chile", "Peru")]}, RELATIONS).read
    (stated,) = read([found("Peru", Chile=0.6, Cuba=0.5)])
    true = 0.6 / 0.9
    assert scores(stated) == pytest.approx({"Chile": 0.9 * true * 0.9 / (true * 0.9 + (1 - true) * 0.01), "Cuba": 0.5})
    assert stated.candidates[0].by_model == (("m", stated.candidates[0].score),)  # it counts for every model
    assert {source.model for source in stated.candidates[0].sources} == {"m", "train"}
    (unnamed,) = read([found("Peru")])
    assert scores(unnamed) == pytest.approx({"Chile": 0.9 * 0.009 / (0.009 + 0.99 * 0.01)})
    (denied,) = read([found("Cuba", Chile=0.8)])
    true = 0.8 / 0.9
    assert scores(denied) == pytest.approx({"Chile": 0.9 * true * 0.1 / (true * 0.1 + (1 - true) * 0.99)})


def test_the_weight_is_the_share_of_facts_that_both_rows_have() -> None:
    """Of a hundred facts that the other side states, train's rows have 60: so is the one that is asked about."""
    pairs = [(f"A{n}", f"B{n}") for n in range(100)]
    rows = [row(one, two) for one, two in pairs] + [
        row(two, *[one] if n < 60 else []) for n, (one, two) in enumerate(pairs)
    ]
    (read,) = TrainSides({"train": [*rows, row("Chile", "Peru")]}, RELATIONS).read([found("Peru", Chile=0.5)])
    both = 2 * 60 + 9
    assert scores(read)["Chile"] == pytest.approx(both / (100 + 60 + 10), abs=0.01)


def test_a_linked_candidate_is_its_item_and_no_namesake() -> None:
    georgia = Example(Query("Georgia", BORDERS, "Q1428"), (GoldObject(("Armenia",), "Q399"),))
    armenia = candidate_set(Query("Armenia", BORDERS, "Q399"), [Candidate("Georgia", 0.5, id="Q230")])
    (read,) = TrainSides({"train": [georgia]}, RELATIONS).read([armenia])
    assert [(one.id, one.score == 0.5) for one in read.candidates] == [("Q230", True), ("Q1428", False)]
    country = Example(Query("Sakartvelo", BORDERS, "Q230"), (GoldObject(("Hayastan",), "Q399"),))
    (read,) = TrainSides({"train": [country]}, RELATIONS).read([armenia])
    assert [(one.text, one.score > 0.5) for one in read.candidates] == [("Georgia", True)]


def test_a_second_spelling_of_the_other_side_stays_as_it_is() -> None:
    (read,) = TrainSides({"train": [row("Chile", "Peru")]}, RELATIONS).read([found("Peru", Chile=0.6, CHILE=0.4)])
    assert scores(read)["CHILE"] == 0.4


def test_an_inverse_is_the_other_side() -> None:
    parent = SPACE.relation("company-parent")
    relations = {
        "parent": replace(parent, inverse_of="owns"),
        "owns": replace(parent, name="owns", inverse_of=parent.name),
    }
    audi = found("Audi", "parent", Volkswagen=0.5)
    (read,) = TrainSides({"train": [row("Volkswagen", "Audi", relation="owns")]}, relations).read([audi])
    assert scores(read)["Volkswagen"] > 0.5


def test_other_relations_and_a_row_s_own_query_stay_as_they_are() -> None:
    rows = [row("Chile", "Peru"), row("Brazil", "Peru", relation=SPOUSE)]
    sets = [found("Peru", RIVERS, Chile=0.8), found("Chile", Peru=1.0), found("Bolivia", Peru=0.8)]
    read = TrainSides({"train": rows}, RELATIONS).read(sets)
    assert all(one is two for one, two in zip(read, sets, strict=True))
    assert scores(TrainSides({"train": rows}, RELATIONS).read([found("Peru", Brazil=0.9)])[0])["Brazil"] == 0.9


@given(
    st.lists(
        st.tuples(st.sampled_from("ABCDE"), st.frozensets(st.sampled_from("ABCDEF"))), unique_by=lambda one: one[0]
    ),
    st.floats(0, 1),
)
def test_scores_stay_probabilities_and_what_is_stated_is_surer(
    rows: list[tuple[str, frozenset[str]]], score: float
) -> None:
    train = [row(name, *sorted(objects)) for name, objects in rows]
    (read,) = TrainSides({"train": train}, RELATIONS).read([found("F", **dict.fromkeys("ABCDE", score))])
    made, stated = scores(read), {name for name, objects in rows if "F" in objects}
    assert all(0 <= one <= 1 for one in made.values())
    known = {name for name, _ in rows}
    assert all(made[one] > made[two] for one in stated for two in known - stated)
    assert all(made[name] == score for name in set("ABCDE") - known)
