"""Where an answer ends though the model goes on: loops, by definition; lists, as the parser reads them."""

import json
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from space import SPACE

from lmkbc import Relation
from lmkbc.answer.literal import Reader, read_literals
from lmkbc.answer.parse import parse
from lmkbc.models.endings import Repeats, list_end

LOOP = 24
PERIOD = 32


BORDERS: Relation = SPACE.relation("CountryBordersCountry")


def goes_round(tokens: list[int]) -> bool:
    """The definition: the last tokens are a period three times or more, and as many as LOOP at least."""
    for period in range(1, PERIOD + 1):
        size = max(LOOP, 3 * period)
        tail = tokens[-size:]
        if len(tail) == size and all(tail[n] == tail[n + period] for n in range(size - period)):
            return True
    return False


@given(
    st.lists(st.integers(0, 2), max_size=40),
    st.lists(st.integers(0, 3), min_size=1, max_size=PERIOD + 3),
    st.integers(1, 30),
)
@example([], list(range(PERIOD)), 4)
@example([], list(range(PERIOD + 1)), 4)
@example([7] * (LOOP - 1), [8], 1)
def test_a_loop_is_what_the_definition_says_at_every_token(before: list[int], period: list[int], times: int) -> None:
    repeats, tokens = Repeats(), list[int]()
    for token in [*before, *period * times][:160]:
        tokens.append(token)
        assert repeats.take(token) == goes_round(tokens)


@given(st.lists(st.integers(), unique=True, max_size=60), st.integers(0, 9))
def test_a_list_of_different_names_is_no_loop(names: list[int], separator: int) -> None:
    repeats = Repeats()
    tokens = [token for name in names for token in (("name", name), separator, separator)]
    assert not any(repeats.take(hash(token)) for token in tokens)


NAMES = st.lists(
    st.text(st.sampled_from("abé 'd\"[](){}.:-#"), min_size=1, max_size=8).map(str.strip).filter(bool), max_size=5
)
CHATTER = st.sampled_from(
    ["", "\n", " I hope this helps.", "\n\nNote: it also has a coast, and rivers.", "}", ")", "\nPeru, borders: none"]
)


@given(NAMES, st.sampled_from([json.dumps, repr]), st.sampled_from(["", " ", "\n"]), CHATTER)
def test_a_list_ends_at_its_bracket_and_what_comes_behind_it_is_no_part_of_the_answer(
    names: list[str], write: Callable[[list[str]], str], space: str, chatter: str
) -> None:
    answer = space + write(names)
    end = list_end(answer + chatter)
    if not any(mark in name for name in names for mark in "'\"[](){}"):
        assert end == len(answer)
    if end is not None:
        assert parse((answer + chatter)[:end], BORDERS, "x") == parse(answer + chatter, BORDERS, "x")


@given(
    st.text(st.sampled_from("[](){}'\",;: \nab“”d\\"), max_size=24).map(lambda text: f"[{text}"), st.text(max_size=6)
)
@example("['Cote d'Ivoire', 'Mali']", "")
@example('["a [b]", "c"]', "")
def test_where_a_list_ends_the_parser_has_closed_it_whatever_comes(text: str, more: str) -> None:
    end = list_end(text)
    if end is None:
        return
    group, at = Reader(text).read(0)
    assert (group.closed, at) == (True, end)
    assert list_end(text[:end]) == list_end(text[:end] + more) == end
    assert read_literals(text[:end])[0].closed


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Peru",
        "(G)I-DLE",
        "The answer: []",
        "['Sudan', 'Namibia', 'Su",
        '["Sudan"',
        '["Bo [',
        "[1)",
        '{"objects": [1]',
    ],
)
def test_what_is_open_or_no_list_has_no_end(text: str) -> None:
    assert list_end(text) is None


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (' ["Arabic", "Fulani"] (and others)', ' ["Arabic", "Fulani"]'),
        ("[]\n\nPeru, borders: [1]", "[]"),
        ('("Peru", "borders", ["Chile"]) or so', '("Peru", "borders", ["Chile"])'),
        ('{"objects": ["Chile"]} ["Peru"]', '{"objects": ["Chile"]}'),
        ("['a (b', 'c']]", "['a (b', 'c']"),
        ('[\n  "Chile",\n  "Peru"\n]\n', '[\n  "Chile",\n  "Peru"\n]'),
    ],
)
def test_the_end_of_a_list(text: str, answer: str) -> None:
    assert text[: list_end(text)] == answer
