"""Draws that were not at their end: what they had come to the end of counts, marked; their last words do not."""

from math import exp
from typing import Any

import pytest
from opened import part
from space import SPACE

from lmkbc.generate.reply import candidates, united
from lmkbc.select.pool import Pool
from lmkbc.testing import CandidateSet, Query, Reply, State

RELATIONS = {name: SPACE.relation(name) for name in SPACE.edition("2023").relations}
LISTS = part("prompt", form="completion", block="{{ subject }}, {{ phrase }}:")
COMMAS = part("prompt", form="completion", block="{{ subject }}, {{ phrase }}:", listing="comma", null="none")
QIDS = part("prompt", form="completion", component="bl23-gpt-ids/prompt")


def drawn(relation: str, text: str, finish: str = "loop", style: Any = LISTS) -> CandidateSet:
    return candidates(Query("Algeria", relation), RELATIONS[relation], style, [Reply(text, finish)], "m")


def names(found: CandidateSet) -> list[str]:
    return [candidate.text for candidate in found.candidates]


SUDAN = ' ["Sudan", "Sudan", "Tanzania"' + ', "Sudan"' * 9
"""Reply of SmolLM2-135M-Instruct about Algeria, and below of others, greedily after four examples of 2023 train."""

REAL = [
    ("CountryBordersCountry", SUDAN + ', "Sud', LISTS, State.CUT, ["Sudan", "Tanzania"]),
    ("CityLocatedAtRiver", ' ["Swan River", "Swan River River", "Swan River River", "S', LISTS, State.CUT, 2),
    ("CountryHasStates", ' ["Guyana", "Bahia Region", "Bahia Premaxa Region", "Bahia Premaxa', LISTS, State.CUT, 3),
    ("CountryBordersCountry", " Egypt, Libya, Sudan, Egypt, Libya, Sudan, Egy", COMMAS, State.CUT, 3),
    ("PersonHasProfession", " artist, musician, dancer, dancer, d", COMMAS, State.CUT, 3),
    ("CountryBordersCountry", ' ["Algeria", "Algeria", "Algeria", "Alg', LISTS, State.DROPPED, []),
    ("PersonHasAutobiography", ' ["The family of the family of the family of', LISTS, State.TRUNCATED, []),
]


@pytest.mark.parametrize(("relation", "text", "style", "state", "expected"), REAL)
@pytest.mark.parametrize("finish", ["length", "loop"])
def test_the_whole_items_of_a_real_list_that_was_cut_off_count_once_each(
    relation: str, text: str, style: Any, state: State, expected: list[str] | int, finish: str
) -> None:
    found = drawn(relation, text, finish, style)
    assert found.draws == (state,)
    assert (len(names(found)) if isinstance(expected, int) else names(found)) == expected
    assert not found.nothing


@pytest.mark.parametrize(("text", "state"), [("[]\n\nIt has no", State.ABSTAINED), ('["Mali"] and so', State.ANSWERED)])
def test_what_was_cut_off_behind_the_list_was_no_part_of_the_answer(text: str, state: State) -> None:
    assert drawn("CountryBordersCountry", text, "length").draws == (state,)


def test_an_id_that_was_cut_off_is_none() -> None:
    found = drawn("CountryBordersCountry", "Q912, Q10", "length", QIDS)
    assert (names(found), found.draws) == (["Q912"], (State.CUT,))
    whole = drawn("CountryBordersCountry", "Q912, Q10; Q912, not Q0 or Q", "stop", QIDS)
    assert [(one.text, one.id) for one in whole.candidates] == [("Q912", "Q912"), ("Q10", "Q10")]


def test_a_text_is_as_sure_as_the_tokens_that_spell_it() -> None:
    spelt = [("Ma", -1.0), ("li", -2.0), (", ", -9.0), ("Cha", -3.0), ("d", -4.0)]
    query, relation = Query("x", "CountryBordersCountry"), SPACE.relation("CountryBordersCountry")
    found = candidates(query, relation, COMMAS, [Reply("Mali, Chad", logprobs=spelt)], "m")
    assert {one.text: one.score for one in found.candidates} == {"Mali": exp(-1.5), "Chad": exp(-3.5)}


def test_no_rounding_makes_a_model_surer_than_sure() -> None:
    reply = Reply('["Mali"]', logprobs=[('["', 0.0), ("Mali", 1e-7), ('"]', 0.0)])
    (one,) = candidates(
        Query("Algeria", "CountryBordersCountry"), RELATIONS["CountryBordersCountry"], LISTS, [reply], "m"
    ).candidates
    assert one.score == 1.0


def test_the_mark_stays_where_parts_and_sources_come_together() -> None:
    cut, whole = drawn("CountryBordersCountry", SUDAN), drawn("CountryBordersCountry", '["Mali"]', "stop")
    one = united([cut, whole])
    assert (one.draws, sorted(names(one))) == ((State.CUT,), ["Mali", "Sudan", "Tanzania"])
    (pooled,) = Pool(edition=SPACE.edition("2023")).merge([[cut], [whole]])
    assert pooled.draws == (State.CUT, State.ANSWERED)
    assert {candidate.score for candidate in pooled.candidates} == {0.5}
    assert not cut.failed
    assert cut.without(lambda _: True, "stop").draws == (State.DROPPED,)
