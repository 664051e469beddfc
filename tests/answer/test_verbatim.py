"""Names as they were written: nothing trimmed, no word for nothing known but the prompt's own."""

import json
import re

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from space import SPACE

from lmkbc import registry
from lmkbc.answer.parse import verbatim
from lmkbc.names import folded_key
from lmkbc.testing import State

BORDERS, CHILDREN = SPACE.relation("CountryBordersCountry"), SPACE.relation("PersonHasNumberOfChildren")


@pytest.mark.parametrize(
    ("text", "null", "state", "objects"),
    [
        ('["Peru", "the Chad"]', "[]", State.ANSWERED, ("Peru", "the Chad")),
        ("['None']", "[]", State.ANSWERED, ("None",)),
        ("['None']", "['None']", State.ABSTAINED, ()),
        ('["None", "Peru"]', "['None']", State.ANSWERED, ("None", "Peru")),
        ("None", "None", State.ABSTAINED, ()),
        ("N/A", "None", State.ANSWERED, ("N/A",)),
        ("Peru (disputed), Utopia", "None", State.ANSWERED, ("Peru (disputed)", "Utopia")),
        ("[]", "", State.ABSTAINED, ()),
        ('[""]', "", State.ABSTAINED, ()),
        ('("Utopia", "borders the country", ["Peru"])', "[]", State.ANSWERED, ("Peru",)),
        ('("Utopia", "borders the country", "unknown")', "[]", State.ANSWERED, ("unknown",)),
        ('("Utopia", "borders the country", []) holds already.', "[]", State.ABSTAINED, ()),
        ('["Utopia"]', "[]", State.ANSWERED, ("Utopia",)),
        ("<think>Peru</think> Chad\nor not", "None", State.ANSWERED, ("Chad",)),
        ("<think>Peru", "None", State.TRUNCATED, ()),
        ("", "", State.UNPARSED, ()),
        (" \n ", "None", State.UNPARSED, ()),
    ],
)
def test_what_is_written_is_what_is_named(text: str, null: str, state: State, objects: tuple[str, ...]) -> None:
    parsed = verbatim(text, BORDERS, "Utopia", null)
    assert (parsed.state, parsed.objects) == (state, objects)


def test_a_number_is_no_more_than_its_text() -> None:
    assert verbatim("[3]", CHILDREN, "Utopia", "[]").objects == ("3",)
    assert verbatim('{"value": 3, "unit": "ha"}', CHILDREN, "Utopia", "[]").objects == ("3",)
    assert verbatim('["three"]', CHILDREN, "Utopia", "[]").objects == ("three",)


SPELT = (re.sub("([A-Z])", r" \1", name) for name in (BORDERS.name, *BORDERS.names))
WORDS = {*folded_key(" ".join((*SPELT, BORDERS.triple, BORDERS.question, "has is at of"))).split()}
"""Words of the relation, which make a list of three a triple."""
NAMES = st.text(st.characters(categories=("L", "N"), include_characters=" .-&'"), min_size=1, max_size=20).map(
    str.strip
)


@given(st.lists(NAMES.filter(bool), max_size=5))
@example(["Chad", "SUBJECT", "Peru"])  # a slot's name is no word of the relation
def test_a_json_list_comes_back_as_it_is(names: list[str]) -> None:
    assume(len(names) < 3 or WORDS.isdisjoint(folded_key(names[1]).split()))  # else a triple
    parsed = verbatim(json.dumps(names), BORDERS, "Utopia", "[]")
    assert (list(parsed.objects), parsed.state) == (names, State.ANSWERED if names else State.ABSTAINED)


@pytest.mark.parametrize(
    ("text", "listing", "state", "objects"),
    [
        ("Chad, and Peru, Korea, South", "comma", State.ANSWERED, ("Chad", "Peru", "Korea", "South")),
        ("1,234; 5", "comma", State.ANSWERED, ("1,234; 5",)),
        (" None ", "comma", State.ABSTAINED, ()),
        ("None.", "comma", State.ANSWERED, ("None.",)),
        ("Chad, Chad", "comma", State.ANSWERED, ("Chad",)),
        (" \n", "comma", State.UNPARSED, ()),
        ("""So: ["Korea, South", 'Chad'] [x]""", "json", State.ANSWERED, ("Korea", "South", "Chad")),
        ('[""]', "json", State.ABSTAINED, ()),
        ("Chad, Peru", "json", State.UNPARSED, ()),
    ],
)
def test_a_split_reply_is_cut_at_every_mark(text: str, listing: str, state: State, objects: tuple[str, ...]) -> None:
    parsed = registry.LISTINGS.get(listing).split(text, "None")
    assert (parsed.state, parsed.objects) == (state, objects)
