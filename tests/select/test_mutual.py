"""Both sides of a pair, asked or stated by train: nothing else is touched, however a run is cut."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from space import SPACE

from lmkbc.errors import InputError
from lmkbc.run.pipeline import Block, as_one
from lmkbc.select.calibration import Calibration, PrecisionCurve
from lmkbc.select.cutoffs import Cutoff
from lmkbc.select.mutual import Mutual, TrainSides, both_sides
from lmkbc.select.registry import build
from lmkbc.select.selector import PerRelation, at_precision, confidences
from lmkbc.types import Candidate, CandidateSet, Example, GoldObject, Query, State
from tests.candidates import candidate_set, sources

BORDERS, SPOUSE, RIVERS = "CountryBordersCountry", "PersonHasSpouse", "RiverBasinsCountry"
RELATIONS = {name: SPACE.relation(name) for name in (BORDERS, SPOUSE, RIVERS)}


def found(subject: str, relation: str = BORDERS, id_: str | None = None, **scores: float) -> CandidateSet:
    named = [Candidate(text, score, sources("m#0"), by_model=(("m", score),)) for text, score in scores.items()]
    return candidate_set(Query(subject, relation, id_), named)


def scores(candidates: CandidateSet) -> dict[str, float]:
    return {one.text: one.score for one in candidates.candidates}


PERU = found("Peru", Chile=0.6, Cuba=0.5, Brazil=0.9)
CHILE = found("Chile", Peru=1.0, Argentina=0.8)
CUBA = found("Cuba", Haiti=0.9)
BOLIVIA = found("Bolivia", PERU=0.8)
SETS = [PERU, CHILE, CUBA, BOLIVIA]
SELECTOR = PerRelation(Cutoff(threshold=0.4), {BORDERS: Mutual(inner=Cutoff(threshold=0.4))})


def test_the_mean_of_both_sides_where_both_were_asked() -> None:
    peru, chile, cuba, bolivia = both_sides(SETS, SETS)
    assert scores(peru) == pytest.approx({"Brazil": 0.9, "Chile": 0.8, "Bolivia": 0.4, "Cuba": 0.25})
    assert scores(chile) == pytest.approx({"Peru": 0.8, "Argentina": 0.8})
    assert cuba is not CUBA
    assert scores(cuba) == pytest.approx({"Haiti": 0.9, "Peru": 0.25})
    assert scores(bolivia) == pytest.approx({"PERU": 0.4})
    assert [one.by_model for one in peru.candidates[1:]] == [(("m", 0.8),), (("m", 0.4),), (("m", 0.25),)]
    assert both_sides(SETS[::-1], SETS[::-1])[::-1] == [peru, chile, cuba, bolivia]


def test_a_second_spelling_of_the_other_side_stays_as_it_is() -> None:
    peru = found("Peru", Chile=0.6, CHILE=0.4)
    combined, _ = both_sides([peru, CHILE], [peru, CHILE])
    assert scores(combined) == pytest.approx({"Chile": 0.8, "CHILE": 0.4})
    itself = found("Peru", Peru=0.6)
    assert both_sides([itself, CHILE], [itself, CHILE])[0] is not itself
    assert scores(both_sides([itself], [itself])[0]) == {"Peru": 0.6}


def test_one_side_only_and_failed_queries_are_as_before() -> None:
    failed = candidate_set(Query("Chile", BORDERS), draws=(State.MISSING,))
    for others in ([], [failed], [found("Chile", "StateBordersState", Peru=1.0)]):
        sets = [PERU, *others]
        assert all(one is before for one, before in zip(both_sides(sets, sets), sets, strict=True))
    assert SELECTOR.select_all([PERU]) == PerRelation(Cutoff(threshold=0.4)).select_all([PERU])


def test_a_linked_candidate_is_its_item_and_no_namesake() -> None:
    state = found("Georgia", id_="Q1428", Alabama=1.0)
    armenia = candidate_set(Query("Armenia", BORDERS, "Q399"), [Candidate("Georgia", 1.0, id="Q230")])
    assert list(both_sides([armenia, state], [armenia, state])) == [armenia, state]
    country = candidate_set(Query("Sakartvelo", BORDERS, "Q230"), [Candidate("Hayastan", 0.5, id="Q399")])
    linked, _ = both_sides([armenia, country], [armenia, country])
    assert scores(linked) == {"Georgia": 0.75}
    twins = [found("Georgia", id_="Q230", Armenia=1.0), state]
    unlinked = found("Armenia", Georgia=0.5)
    assert scores(both_sides([unlinked], [unlinked, *twins])[0])["Georgia"] == 0.5  # which of the two is not known


def test_an_inverse_is_the_other_side() -> None:
    parent, child = found("Audi", "parent", Volkswagen=0.4), found("Volkswagen", "subsidiary", Audi=1.0, Seat=1.0)
    seat = found("Seat", "parent", Ford=0.9)
    sets = [parent, child, seat]
    rules = {"parent": Mutual(inner=Cutoff(threshold=0.6), inverse="subsidiary")}
    read = PerRelation(Cutoff(threshold=0.5), rules).read(sets)
    assert [scores(one) for one in read] == [{"Volkswagen": 0.7}, scores(child), {"Ford": 0.9, "Volkswagen": 0.5}]


def test_blocks_are_joined_before_a_rule_reads_both_sides() -> None:
    whole = SELECTOR.select_all(SETS)
    assert [one.text for one in whole[0].objects] == ["Brazil", "Chile", "Bolivia"]
    for size in (1, 2, 3):
        cut = [SETS[at : at + size] for at in range(0, len(SETS), size)]
        (block,) = as_one(Block(tuple(one.query for one in some), tuple(some)) for some in cut)
        assert block.queries == tuple(one.query for one in SETS)
        assert SELECTOR.select_all(block.sets) == whole
    assert SELECTOR.reads_others
    assert list(as_one([])) == []
    assert not PerRelation(Cutoff(threshold=0.4)).reads_others


def test_confidences_are_of_what_the_rule_reads() -> None:
    curve = PrecisionCurve(threshold=(0.7,), precision=(0.95,), recall=(0.5,))
    tuned = replace(SELECTOR, calibrations={BORDERS: Calibration(weights={"score": 1.0})}, curves={BORDERS: curve})
    (sure, *_), (kept, *_) = confidences(tuned, SETS), at_precision(tuned, 0.9).select_all(SETS)
    assert dict(zip([one.text for one in sure.candidates], sure.p, strict=True))["Chile"] == pytest.approx(0.8)
    assert [one.text for one in kept.objects] == ["Brazil", "Chile"]
    assert sure.of_each(kept.objects) == pytest.approx([0.9, 0.8])


def test_it_goes_round_a_rule_and_not_into_one() -> None:
    inner = {"rule": "mutual", "inner": {"rule": "top-k", "k": 1}}
    with pytest.raises(InputError, match="reads other queries"):
        build({"rule": "verified", "inner": inner})


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
