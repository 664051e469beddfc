"""Rules of systems of 2026: what corrects a list, what reverses an abstention, and what fuses sources."""

from collections.abc import Mapping
from hashlib import sha256
from random import Random
from typing import Any

import pytest
from opened import part
from space import SPACE

from lmkbc import registry
from lmkbc.recipe import read_recipe
from lmkbc.testing import Candidate, CandidateSet, Example, Nil, Query, Source
from tests.candidates import candidate_set
from tests.rules import rule_of

QUERY = Query("s", "r")
WINNERS: dict[str, Any] = {"least": 0.3, "rate": 0.25, "prune_below": 0.5, "add_below": 0.7, "leads": 0.33}


def row(**named: Mapping[str, float]) -> CandidateSet:
    """Candidates by the score that each source gives them."""
    return candidate_set(
        QUERY, tuple(Candidate(text, sum(by.values()) / 9, by_model=tuple(by.items())) for text, by in named.items())
    )


def drawn(**named: Mapping[str, int]) -> CandidateSet:
    """Candidates by the number of draws of each source that name them."""
    found = []
    for place, (text, by) in enumerate(named.items()):
        draws = tuple(Source(model, str(100 * place + draw)) for model, count in by.items() for draw in range(count))
        found.append(Candidate(text, 1.0, draws, by_model=tuple((model, 1.0) for model in by)))
    return candidate_set(QUERY, tuple(found))


def kept(rule: Any, found: CandidateSet) -> str:
    return " ".join(one.text for one in rule.select(found).objects)


@pytest.mark.parametrize(
    ("named", "left"),
    [
        ({"a": {"list": 1, "years": 0.9}, "b": {"list": 1, "years": 0.3}, "c": {"list": 1}}, "a b c"),  # two of three
        ({"a": {"list": 1, "years": 0.9}, "c": {"list": 1}, "d": {"back": 0.5}}, "a c d"),  # half: one joins
        ({"a": {"list": 1, "years": 0.1}, "c": {"list": 1}, "d": {"back": 0.5}}, "a d"),  # none: one is dropped
        ({"a": {"list": 0.2, "back": 0.3}, "d": {"years": 1.0, "back": 0.34}}, "d"),  # an empty list is not confirmed
    ],
)
def test_a_list_that_the_years_do_not_confirm_is_corrected(named: dict[str, Mapping[str, float]], left: str) -> None:
    assert kept(rule_of("cs2-26/winners", **WINNERS), row(**named)).split() == left.split()


def test_numbers_near_the_smallest_of_a_cluster_are_one_answer() -> None:
    found = drawn(**{"1000": {"m": 2}, "1020": {"m": 1}, "1027": {"m": 2}, "1040": {"m": 1}})
    assert kept(rule_of("cs2-26/first-member"), found) == "1000"
    middle = float(kept(rule_of("cs2-26/stab-mid"), drawn(**{"100": {"m": 1}})))
    assert middle == pytest.approx(99.875, rel=1e-4)  # of a single draw v, 0.99875 v


CITY: dict[str, Any] = {
    "base": "base",
    "first": {"profile": 10},
    "gate": "status",
    "modal": 0.2,
    "dead": 0.7,
    "channels": {"scaffold": 4, "plain": 4},
    "years": "scaffold",
    "alive": 0.25,
    "dated": 0.9,
    "leading": 0.3,
}


@pytest.mark.parametrize(
    ("named", "nil", "alive", "left"),
    [
        ({"Rome": {"base": 1}, "Oslo": {"plain": 4}}, {}, 0, "Rome"),
        ({"Oslo": {"plain": 3}, "Rome": {"plain": 1}}, {"scaffold": 0.1}, 2, "Oslo"),
        ({"Oslo": {"plain": 3}}, {"scaffold": 0.1}, 3, ""),  # more than a quarter call the person alive
        ({"Oslo": {"plain": 3}}, {"scaffold": 0.2}, 0, ""),  # too few lines of years
        ({"Oslo": {"plain": 1}, "a": {"plain": 1}, "b": {"plain": 1}, "c": {"plain": 1}}, {"scaffold": 0}, 0, ""),
        ({"Oslo": {"profile": 2}}, {"status": 0.3}, 0, "Oslo"),
        ({"Oslo": {"profile": 2}}, {"status": 0.4}, 0, ""),
    ],
)
def test_an_abstention_on_a_city_is_reversed_where_signals_agree(
    named: dict[str, Mapping[str, int]], nil: Mapping[str, float], alive: int, left: str
) -> None:
    found = candidate_set(QUERY, drawn(**named).candidates, draws=drawn(**named).draws)
    sources = tuple(Source("plain", str(draw)) for draw in range(alive))
    silent = (Nil(1.0, sources, (("plain", 1.0),)),) if alive else ()
    share = (Nil(sum(nil.values()), (Source("x"),), tuple(nil.items())),) if nil else ()
    both = CandidateSet(QUERY, found.candidates, found.draws, nothing=silent, nil_probabilities=share)
    assert kept(rule_of("cs2-26/city", **CITY), both) == left


def test_sources_are_fused_with_the_probability_of_yes() -> None:
    rule = rule_of("duke26/fused", weights={"a": 1.0, "b": 3.0}, probed=0.3, threshold=0.4, belongs={"Ceuta": "Spain"})
    found = row(x={"a": 0.4}, y={"a": 1.0, "b": 0.2}, z={"b": 0.9, "probes": 0.0}, Ceuta={"a": 1.0}, Spain={"a": 0.5})
    assert kept(rule, found) == "Spain z y x"  # 1, .7 of .675, .4, .4
    assert kept(rule, row(u={"probes": 1.0})) == ""


def test_a_city_needs_few_draws_for_nothing_or_a_sure_death() -> None:
    rule = rule_of("duke26/city", weights={"a": 1.0, "b": 2.0}, named=3.0, threshold=1.8)
    found = drawn(Oslo={"a": 2}, Rome={"b": 1})
    silent = (Nil(1.0, tuple(Source("b", str(900 + draw)) for draw in range(3))),)
    assert kept(rule, CandidateSet(QUERY, found.candidates, nothing=silent)) == ""  # 4 of 10, times 3
    dead = (Nil(0.4, (Source("gate"),)),)
    sure = CandidateSet(QUERY, found.candidates, nothing=silent, nil_probabilities=dead)
    assert kept(rule, sure) == "Oslo"  # on a tie, of the first source


@pytest.mark.parametrize(
    ("how", "left"),
    [
        ({"ties": "highest", "take": "highest"}, "2010"),
        ({"ties": "lowest", "take": "highest"}, "1050"),
        ({"ties": "lowest", "take": "upper"}, "1050"),
        ({"ties": "lowest", "take": "upper", "gap": 0.01}, "2010"),
    ],
)
def test_a_group_of_numbers_ends_at_a_gap(how: dict[str, Any], left: str) -> None:
    rule = rule_of("duke26/group", **{"weights": {"m": 1.0}, "gap": 0.05, **how})
    assert kept(rule, drawn(**{"1000": {"m": 1}, "1050": {"m": 1}, "2000": {"m": 1}, "2010": {"m": 1}})) == left
    assert kept(rule, row()) == ""
    assert kept(rule_of("duke26/group", **{"weights": {}, "gap": 0.1, "otherwise": 7.5, **how}), row()) == "7.5"


def test_two_names_of_one_winner_are_one_and_a_check_adds_a_winner() -> None:
    rule = rule_of("instax26/rescue", inner=rule_of("cutoff", threshold=0.5), least=0.03, affirmed=0.75)
    found = [Candidate("Ann Bo Lee", 0.9), Candidate("Ann Lee", 0.6), Candidate("Bo Day", 0.04, verification=0.75)]
    found += [Candidate("Cy Fox", 0.02, verification=1.0), Candidate("Di Gil", 0.3, verification=0.7)]
    assert kept(rule, candidate_set(QUERY, tuple(found))) == "Ann Bo Lee Bo Day"


def test_a_cluster_has_a_bounded_diameter() -> None:
    numbers = candidate_set(QUERY, tuple(Candidate(str(value), 0.2) for value in (100, 102, 104, 106, 108)))
    assert kept(rule_of("cover26/diameter", diameter=0.025), numbers) == "100"
    assert kept(rule_of("cover26/diameter", diameter=0.025, take="highest"), numbers) == "104"


def test_a_final_answer_is_read_behind_its_mark() -> None:
    names, figure = (registry.LISTINGS.get(f"core26/{name}") for name in ("names", "number"))
    assert names.split("It was in 1990.\nFinal answer: Ann Lee, Bo Day, that is all", "None").objects == (
        "Ann Lee",
        "Bo Day",
    )
    assert [names.split(text, "None").state for text in ("None", "So. Final answer: none.")] == ["abstained"] * 2
    assert figure.parts("Of 20,000 in 1990. Answer: 1.5 million people of 2") == ["1500000.0"]
    assert figure.parts("In 1990 it held 20,000") == ["20000"]


def test_a_biography_that_says_alive_names_no_city() -> None:
    biography = registry.LISTINGS.get("v19-26/biography")
    assert biography.split("physicist, who died in 1955.\nCity: Princeton, New Jersey").objects == ("Princeton",)
    assert biography.split("musician, who is alive.\nCity: London").state == "abstained"
    assert registry.LISTINGS.get("v19-26/line").split("None known; Chad", "none").state == "abstained"


def test_an_acronym_votes_for_the_name_with_its_initials() -> None:
    rule = rule_of("v19-26/acronyms", inner=rule_of("cutoff", threshold=0.5))
    named = [Candidate("New York Stock Exchange", 0.3), Candidate("NYSE", 0.3), Candidate("OMX", 0.6)]
    assert kept(rule, candidate_set(QUERY, tuple(named))) == "New York Stock Exchange OMX"


def test_the_window_of_most_draws_has_their_median() -> None:
    numbers = [Candidate(str(value), 0.2) for value in (100, 104, 105, 109, 112)]
    assert kept(rule_of("v19-26/window"), candidate_set(QUERY, tuple(numbers))) == "104"


def test_core_draws_the_examples_of_a_query_by_a_hash() -> None:
    shots = part("shots", component="core26/shots", method="fixed", per="query", k=2)
    rows = [Example(Query(name, "hasArea"), ()) for name in "abcdefgh"]
    chosen = {who: "".join(one.query.subject for one in shots.chosen(Query(who, "hasArea"), rows)) for who in "XY"}
    drawn = {
        who: "".join(Random(int(sha256(f"42:hasArea:{who}".encode()).hexdigest(), 16) % 2**32).sample("abcdefgh", 2))
        for who in "XY"
    }
    assert chosen == drawn
    assert [one.query.subject for one in shots.chosen(Query("X", "hasArea"), rows[:2])] == ["a", "b"]


def test_a_winner_of_the_authors_shape_is_kept_and_no_longer_one() -> None:
    shape = read_recipe(SPACE, "duke26").clean.shape
    assert shape
    names = ("A" * 61, "A" * 62, "A", "Al", "Élodie", "U2", "ann")
    assert [shape.fits(name) for name in names] == [True, False, False, True, False, False, False]
