"""Every answer format keeps to this: what it writes is read as it was written, also where it was cut off."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opened import part

from lmkbc import Relation, registry
from lmkbc.generate.reply import candidates
from lmkbc.models.endings import list_end
from lmkbc.testing import CandidateSet, Query, Reply, State
from tests.answer.test_parse import AREA, BAND, WHOLE

LISTINGS = {name: registry.LISTINGS.get(name) for name in registry.LISTINGS}

PLAIN = "Ann Lee", "Bo Day", "Chad 7", "São Tomé", "AC/DC", "Jean-Luc Ponty"
HARD = (
    *PLAIN,
    *("Washington, D.C.", "Foo, Inc.", "Bosnia and Herzegovina", "Simon & Garfunkel", "7 Seconds", "1,234 Miles"),
    *("O'Brien", 'Ann "Bo" Lee', "(G)I-DLE", "Sunn O)))", "Kiss (band) Army", "Emmy [live] Lou", "Jay-Z - Live"),
)
every = pytest.mark.parametrize(
    ("listing", "parse_as"),
    [(name, way) for name in LISTINGS for way in ("any", "line", "split") if LISTINGS[name].marks or way != "line"],
)
cleaned = st.sampled_from([True, False, "spellings"])


def style_of(listing: str, parse_as: Any) -> Any:
    return part(
        "prompt",
        form="completion",
        listing=listing,
        parse_as=parse_as,
        null="None",
        answer="ANSWER: {{ answer }}" if parse_as == "line" else "",
    )


def names_of(parse_as: Any) -> st.SearchStrategy[list[str]]:
    """Lists of names; without separators, quotes and brackets in them where a reading takes these as written."""
    return st.lists(st.sampled_from(HARD if parse_as == "any" else PLAIN), unique=True, max_size=6)


def answer(style: Any, names: list[str], relation: Relation) -> str:
    return (style.answer or "{{ answer }}").replace("{{ answer }}", style.listed(names, relation))


def read(style: Any, text: str, relation: Relation, clean: Any, finish: str = "stop") -> CandidateSet:
    return candidates(Query("Some Subject", relation.name), relation, style, [Reply(text, finish)], "m", clean=clean)


def texts(found: CandidateSet) -> list[str]:
    return [candidate.text for candidate in found.candidates]


@every
@given(st.data(), cleaned)
def test_what_is_written_is_read(listing: str, parse_as: Any, data: st.DataObject, clean: Any) -> None:
    style, names = style_of(listing, parse_as), data.draw(names_of(parse_as))
    found = read(style, answer(style, names, WHOLE), WHOLE, clean)
    assert (texts(found), found.draws) == (names, (State.ANSWERED if names else State.ABSTAINED,))


@every
@given(st.data(), cleaned, st.sampled_from(("length", "loop")))
def test_a_cut_off_answer_names_the_first_objects(
    listing: str, parse_as: Any, data: st.DataObject, clean: Any, finish: str
) -> None:
    style, names = style_of(listing, parse_as), data.draw(names_of(parse_as).filter(bool))
    whole = answer(style, names, WHOLE)
    text = whole[: data.draw(st.integers(0, len(whole)))]
    found = read(style, text, WHOLE, clean, finish)
    certain = sum(len(answer(style, names[:count], WHOLE)) < len(text) for count in range(1, len(names)))
    assert texts(found) == names[: len(found.candidates)]
    assert len(found.candidates) >= certain - 1
    if list_end(text) is None and not text.endswith("\n"):
        assert found.draws == (State.CUT if found.candidates else State.TRUNCATED,)


@every
@given(cleaned)
def test_numbers_and_names_between_commas_are_read(listing: str, parse_as: Any, clean: Any) -> None:
    style = style_of(listing, parse_as)
    for number in ("1250", "0.5", "0.001"):
        assert texts(read(style, answer(style, [number], AREA), AREA, clean)) == [number]
    assert texts(read(style, answer(style, [*PLAIN], BAND), BAND, clean)) == [*PLAIN]


@every
def test_no_answer_ends_at_a_stop_within_it(listing: str, parse_as: Any) -> None:
    style = style_of(listing, parse_as)
    assert not any(stop in answer(style, [*HARD], WHOLE) for stop in style.stops)


@every
@given(st.text(max_size=80), st.sampled_from(["None", "[]", ""]), st.sampled_from([WHOLE, AREA]), cleaned)
def test_any_text_has_a_state(
    listing: str, parse_as: Any, text: str, null: str, relation: Relation, clean: Any
) -> None:
    parsed = LISTINGS[listing].read(text, relation, "Utopia", null, clean=clean, parse_as=parse_as)
    assert bool(parsed.objects) == (parsed.state is State.ANSWERED)
