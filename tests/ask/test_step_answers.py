"""A step reads of an answer what its kind says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opened import part
from space import SPACE

from lmkbc.generate.step_answers import read, verdict
from lmkbc.testing import Reply

RELATION = SPACE.relation("capacity")


def items(reads: str, text: str, finish: str = "stop", **how: object) -> tuple[str, ...] | None:
    steps = [{"name": "x", "ask": "?", "parse_as": reads, **how}]
    (step,) = part("prompt", steps=steps, ask="{{ x }} {{ asked }}").steps
    return read(step, Reply(text, finish), RELATION, "Utopia Arena")


@pytest.mark.parametrize(
    ("reads", "text", "found"),
    [
        ("text", "<think>hm</think>Built in\n\n1950.", ("Built in 1950.",)),
        ("text", " ", None),
        ("list", "1. Alpha Park\n2. Beta Park\n3. Alpha Park", ("Alpha Park", "Beta Park")),
        ("list", '["Utopia Arena", "Beta Park"]', ("Utopia Arena", "Beta Park")),
        ("list", "None", ()),
        ("list", "[]", ()),
        ("numbers", "12,500; 30000", ("12500", "30000")),
        ("span", "From 1987 to 2001.", ("1987 to 1989", "1990 to 1999", "2000 to 2001")),
        ("span", "It ended in 2001, having begun in 1999.", ("1999", "2000 to 2001")),
        ("span", "It was awarded in 1999 alone.", ("1999",)),
        ("span", "For 12345 years", None),
        ("span", "I could not say.", None),
    ],
)
def test_what_is_read(reads: str, text: str, found: tuple[str, ...] | None) -> None:
    assert items(reads, text) == found


def test_a_span_without_an_end_goes_on_to_the_year_that_the_step_names() -> None:
    assert items("span", "since 1998, ongoing", until=2003, every=5) == ("1998 to 1999", "2000 to 2003")
    assert items("span", "1998-", until=2000, every=1) == ("1998", "1999", "2000")
    assert items("span", "only in 1998", until=2003) == ("1998",)


def test_the_last_slots_of_a_long_span_count_where_none_becomes_wider() -> None:
    assert items("span", "1800 to 2001", every=1, max=2, component="mave26/years") == ("2000", "2001")
    assert items("span", "1800 to 2001", every=10, max=2, component="mave26/years") == ("1990 to 1999", "2000 to 2001")
    assert items("span", "2000 to 2001", every=1, max=5, component="mave26/years") == ("2000", "2001")


def test_what_is_cut_off_or_too_long_loses_its_last_item_and_what_is_withheld_is_not_read() -> None:
    assert items("list", "Alpha; Beta; Gam", "length") == ("Alpha", "Beta")
    assert items("list", "Gam", "length") is None
    assert items("list", '["Alpha", "Gam"]', "length") == ("Alpha", "Gam")
    assert items("list", "Alpha; Beta; Gamma", longest=15) == ("Alpha", "Beta")
    assert items("list", "Alpha; Beta; Gamma", max=2) == ("Alpha", "Beta")
    assert items("text", "Alpha", "content_filter") is None


@pytest.mark.parametrize(
    ("text", "holds"), [("Yes, in 1990.", True), ("**No**", False), ("true", True), ("Nobody knows", None), ("", None)]
)
def test_a_verdict_is_the_first_word(text: str, holds: bool | None) -> None:
    assert verdict(Reply(text)) is holds


@given(st.integers(1000, 2099), st.integers(1000, 2099), st.integers(1, 1000), st.integers(1, 256))
def test_the_slots_of_a_span_hold_each_of_its_years_once_and_are_as_few_as_wanted(
    one: int, other: int, every: int, most: int
) -> None:
    slots = items("span", f"between {one} and {other}", every=every, max=most) or ()
    years = [year for slot in slots for ends in [slot.split(" to ")] for year in range(int(ends[0]), int(ends[-1]) + 1)]
    assert years == list(range(min(one, other), max(one, other) + 1))
    assert len(slots) <= most


@given(st.text(max_size=300), st.sampled_from(["text", "list", "numbers", "span"]), st.integers(1, 40))
def test_no_text_breaks_a_step_and_none_feeds_more_than_its_bounds(text: str, reads: str, longest: int) -> None:
    found = items(reads, text, longest=longest, max=3) or ()
    assert len(found) <= 3
    assert all(item and "\n" not in item for item in found)
    assert reads != "text" or all(len(item) <= longest for item in found)
