"""The line of an answer: what counts as one, and names as they stand there."""

from dataclasses import replace
from typing import Any

import pytest
from opened import part
from space import SPACE

from lmkbc import InputError, Relation
from lmkbc.generate.reply import candidates
from lmkbc.testing import CandidateSet, Query, Reply, State

EXCHANGE, AREA = SPACE.relation("companyTradesAtStockExchange"), SPACE.relation("hasArea")
STYLE = part(
    "prompt", listing="comma", null="None", parse_as="line", answer="WHY: {{ reasoning }}\nANSWER: {{ answer }}"
)


def drawn(
    text: str,
    clean: bool | str = "spellings",
    finish: str = "stop",
    relation: Relation = EXCHANGE,
    style: Any = STYLE,
) -> CandidateSet:
    query = Query("Foo Ltd", relation.name)
    return candidates(query, relation, style, [Reply(text, finish)], "m", clean=clean)  # type: ignore[arg-type]


def texts(found: CandidateSet) -> list[str]:
    return [one.text for one in found.candidates]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("WHY: it is listed.\nANSWER: Nasdaq", "Nasdaq"),
        ("answer : Nasdaq\nThat is all.", "Nasdaq"),
        ("ANSWER: ANSWER: Nasdaq", "Nasdaq"),
        ("ANSWER: Nasdaq\nno\n ANSWER:  nasdaq", "nasdaq"),
        ("ANSWER: Nasdaq\nANSWER: Euronext", None),
        ("ANSWER:\nNasdaq", None),
        ("The ANSWER: Nasdaq", None),
        ("**ANSWER:** Nasdaq", None),
        ("Nasdaq", None),
    ],
)
def test_lines_that_begin_with_the_mark_and_agree_are_the_answer(text: str, line: str | None) -> None:
    assert texts(drawn(text, clean=False)) == ([] if line is None else [line])


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("Bosnia and Herzegovina, Serbia, and Peru.", ("Bosnia and Herzegovina", "Serbia", "Peru")),
        ("Riga, Latvia", ("Riga", "Latvia")),
        ("Nasdaq (NDAQ); the Exchange", ("Nasdaq (NDAQ)", "the Exchange")),
        ("Foo, Inc., Ann Lee, Jr.", ("Foo, Inc", "Ann Lee, Jr")),
        ("Nasdaq, None", ("Nasdaq",)),
        ("None", ()),
        ("n/a.", ()),
        ("none, unknown", ()),
    ],
)
def test_names_stand_as_they_were_written(line: str, names: tuple[str, ...]) -> None:
    found = drawn(f"ANSWER: {line}", clean=False)
    assert (texts(found), found.draws) == ([*names], (State.ANSWERED if names else State.ABSTAINED,))


def test_with_semicolons_commas_belong_to_names() -> None:
    style = replace(STYLE, listing="semicolon")
    assert texts(drawn("ANSWER: Riga, Latvia; Bonn", clean=False, style=style)) == ["Riga, Latvia", "Bonn"]


@pytest.mark.parametrize(
    ("line", "number"), [("about 1,234.50 km²", "1234.5"), ("12 or 13", "12"), ("0.5", "0.5"), ("large", None)]
)
def test_the_first_number_of_a_line_counts(line: str, number: str | None) -> None:
    found = drawn(f"ANSWER: {line}", relation=AREA)
    assert texts(found) == ([] if number is None else [number])
    assert (found.draws == (State.UNPARSED,)) == (number is None)


@pytest.mark.parametrize(
    ("kind", "line", "objects"),
    [
        ("date", "October 12, 1985.", ("1985-10-12",)),
        ("date", "soon", ()),
        ("string", "Liberty, equality; X. ", ("Liberty, equality; X.",)),
        ("url", "https://a.org/b,c", ("https://a.org/b,c",)),
    ],
)
def test_dates_are_read_in_a_line_and_texts_stay_whole(kind: str, line: str, objects: tuple[str, ...]) -> None:
    asked = replace(AREA, kind=kind, unit=None, unit_id=None)
    found = drawn(f"ANSWER: {line}", relation=asked)
    assert (texts(found), found.draws) == ([*objects], (State.ANSWERED if objects else State.UNPARSED,))


def test_a_reply_is_read_by_its_line_and_spellings_alone_are_replaced() -> None:
    found = drawn("It is not Euronext.\nANSWER: NYSE, the Foo Exchange (FX), Foo Ltd")
    assert [one.text for one in found.candidates] == ["New York Stock Exchange", "the Foo Exchange (FX)", "Foo Ltd"]
    assert [one.text for one in drawn("ANSWER: NYSE", clean=False).candidates] == ["NYSE"]
    assert [one.text for one in drawn("ANSWER: the Foo Exchange (FX), Foo Ltd", clean=True).candidates] == [
        "Foo Exchange"
    ]
    assert drawn("Nasdaq").draws == (State.UNPARSED,)
    assert drawn("ANSWER: None").draws == (State.ABSTAINED,)
    assert drawn("I think", finish="length").draws == (State.TRUNCATED,)
    assert drawn("ANSWER: Nasdaq, Euro", finish="length").draws == (State.CUT,)
    assert drawn("ANSWER: Nasdaq\nThat is", finish="length").draws == (State.ANSWERED,)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"answer": "{{ answer }}"}, "knows the line by the words before"),
        ({"answer": "ANSWER: {{ answer }} END"}, "knows the line by the words before"),
        ({"answer": "ANSWER: {{ answer }}", "listing": "json"}, "between commas or semicolons"),
    ],
)
def test_a_line_needs_a_mark_and_names_that_can_be_parted(settings: dict[str, str], error: str) -> None:
    with pytest.raises(InputError, match=error):
        part("prompt", **{"listing": "comma", "parse_as": "line", **settings})
