"""Answers of a cloze that are kept: function words, stems, words of the name, digits, and the word for nothing."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opened import part
from space import SPACE

from lmkbc import InputError
from lmkbc.masked.candidates import ClozeAnswers
from lmkbc.testing import Query

EDITION = SPACE.edition("2022")
NAMES = ("ChemicalCompoundElement", "PersonProfession", "PersonInstrument", "PersonHasNumberOfChildren")
RELATIONS = {name: SPACE.relation(name) for name in NAMES}
ELEMENTS = RELATIONS["ChemicalCompoundElement"]


def cleaning(**settings: Any) -> ClozeAnswers:
    return ClozeAnswers(part("probe", **settings), EDITION, RELATIONS, {})


def kept(relation: str, scores: dict[str, float], subject: str = "Somebody", **settings: Any) -> dict[str, float]:
    return cleaning(**settings).kept(Query(subject, relation), scores)


def test_words_that_name_nothing_are_dropped() -> None:
    scores = {"the": 0.4, "Her": 0.1, "guitar": 0.2, "OF": 0.1, "##tar": 0.1, ".": 0.1}
    assert kept("PersonInstrument", scores) == {"guitar": 0.2, "OF": 0.1}  # capitals make an abbreviation
    assert kept("PersonInstrument", scores, clean=False) == scores


def test_function_words_leave_names_alone() -> None:
    names = {"us", "who", "may", "will", "one", "two"}
    for relation in SPACE.relations.values():
        names |= {name.casefold() for name in [*relation.shape.closed, *relation.shape.variants.values()]}
    assert kept("PersonInstrument", {"the": 0.5}) == {}
    lost = {name for name in names if not kept("PersonInstrument", {name: 0.5})}
    assert not {name for name in lost if name.isalpha()}


def test_a_word_stands_for_what_the_recipe_says() -> None:
    settings: Any = {"component": "ning22/probe", "variants": {"PersonProfession": {"acting": "actor"}}}
    assert kept("PersonProfession", {"Acting": 0.3, "actor": 0.2}, **settings) == {"actor": pytest.approx(0.5)}
    assert kept("PersonInstrument", {"acting": 0.3}, **settings) == {"acting": 0.3}


@pytest.mark.parametrize(
    ("word", "element"),
    [
        ("sulfide", "sulfur"),
        ("Sulphuric", "sulfur"),
        ("chlorides", "chlorine"),
        ("hydroxide", "hydrogen"),
        ("oxide", None),
        ("tin", "tin"),  # the list itself
        ("", None),
    ],
)
def test_elements_are_known_by_four_letters(word: str, element: str | None) -> None:
    assert _stem(word) == element


def _stem(word: str) -> str | None:
    settings: Any = {"component": "fang22/probe", "stems": {"ChemicalCompoundElement": 4}}
    return next(iter(kept("ChemicalCompoundElement", {word: 0.5}, **settings)), None)


@given(st.sampled_from(sorted(ELEMENTS.shape.closed)), st.text("abc", max_size=4))
def test_what_begins_as_an_element_is_one(name: str, end: str) -> None:
    found = _stem(name + end)
    assert found is not None or len(name) < 4
    assert found is None or found[:3] == name[:3]


def test_stems_come_after_the_list_itself() -> None:
    scores = {"sulfur": 0.3, "sulfide": 0.2, "acid": 0.2, "tin": 0.1}
    assert kept("ChemicalCompoundElement", scores) == {"sulfur": 0.3, "tin": 0.1}
    settings: Any = {"component": "fang22/probe", "stems": {"ChemicalCompoundElement": 4}}
    assert kept("ChemicalCompoundElement", scores, **settings) == {"sulfur": pytest.approx(0.5), "tin": 0.1}


def test_words_of_a_name_are_asked_and_say_elements_themselves() -> None:
    settings = {"stems": {"compound-elements": 4}, "name_words": {"compound-elements": 0.7}}
    probe, subject = part("probe", component="fang22/probe", **settings), "(2-)Sodium hydrogen-sulfate"
    assert probe.subject_words(subject, ELEMENTS) == ("Sodium", "hydrogen", "sulfate")
    assert probe.named_in(subject, ELEMENTS) == {"sodium": 0.7, "hydrogen": 0.7, "sulfur": 0.7}
    assert probe.subject_words("Water", ELEMENTS) == ()
    assert probe.subject_words(subject, RELATIONS["PersonInstrument"]) == ()
    assert probe.named_in(subject, RELATIONS["PersonInstrument"]) == {}


@pytest.mark.parametrize("setting", ["stems", "name_words"])
def test_an_open_relation_has_no_names_to_tell(setting: str) -> None:
    with pytest.raises(InputError, match=rf"probe\.{setting} names profession, whose shape lists no closed names"):
        cleaning(component="fang22/probe", **{setting: {"PersonProfession": 1}})


def test_digits_alone_where_they_are_wanted() -> None:
    scores = {"two": 0.3, "2": 0.2, "²": 0.1, "many": 0.1}
    assert kept("PersonHasNumberOfChildren", scores, component="yang23/probe", digits=True) == {"2": 0.2}
    assert kept("PersonHasNumberOfChildren", scores) == {"2": pytest.approx(0.5)}
    assert kept("PersonProfession", {"actor": 0.3}, component="yang23/probe", digits=True) == {"actor": 0.3}


def test_the_word_for_nothing_counts_where_there_may_be_nothing() -> None:
    scores = {"Empty": 0.6, "guitar": 0.2}
    assert kept("PersonInstrument", scores, null="Empty") == {"": 0.6, "guitar": 0.2}
    assert kept("PersonProfession", scores, null="Empty") == {"guitar": 0.2}
    assert kept("PersonInstrument", scores, null="Empty", clean=False) == {"": 0.6, "guitar": 0.2}


def test_a_number_may_be_bounded() -> None:
    scores = {"2": 0.2, "10": 0.1, "11": 0.4}
    bounded: Any = {"component": "yang23/probe", "maximum": {"PersonHasNumberOfChildren": 10}}
    found = kept("PersonHasNumberOfChildren", scores, digits=True, **bounded)
    assert found == {"2": 0.2, "10": 0.1}
    assert kept("PersonHasNumberOfChildren", scores, component="yang23/probe", digits=True) == scores
