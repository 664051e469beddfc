"""Numbers of all kinds and sizes, in every style of answer: read or refused, and never an exception."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from growth import in_proportion
from hypothesis import given
from hypothesis import strategies as st

from lmkbc import Relation, Shape, registry
from lmkbc.answer.clean import sifted
from lmkbc.answer.parse import parse
from lmkbc.kinds.numbers import read_numbers
from lmkbc.testing import State
from tests.answer.test_parse import AREA, BAND, ELEMENT, SEATS, SUBJECT, WHOLE

NAME = replace(WHOLE, kind="string")
KINDS = {"names": BAND, "closed": ELEMENT, "strings": NAME, "areas": AREA, "counts": SEATS}

DIGITS = ("0123456789", "٠١٢٣٤٥٦٧٨٩", "०१२३४५६७८९", "０１２３４５６７８９", "𝟎𝟏𝟐𝟑𝟒𝟓𝟔𝟕𝟖𝟗", "⁰¹²³⁴⁵⁶⁷⁸⁹")
WORDS = (
    *("nan", "inf", "-inf", "Infinity", "infinite", "NaN km2", "sNaN", "zero", "a googol", "two million million"),
    *("MMXXIV", "Ⅻ", "iv", "½", "5½", "3/4", "¾ km²", "twenty-five", "dozen", "minus three", "0x1F", "1_000", "Na"),
)
UNITS = ("", " km2", " km²", "ha", " sq mi", " acres", " spectators", " million", "k", " trillion", " m²", "st")
SEPARATORS = ("", ",", ".", "'", " ", "\u00a0", "\u202f", "٬", "_")
POWERS = ("e{}", "E+{}", "e-{}", "x10^{}", " × 10^{}", "*10**{}", " · 10^−{}")


def _grouped(digits: str, separator: str) -> str:
    return separator.join(digits[max(0, end - 3) : end] for end in range(len(digits) % 3 or 3, len(digits) + 3, 3))


def _in_script(number: int, script: str, separator: str) -> str:
    return _grouped(str(number), separator).translate(str.maketrans(DIGITS[0], script))


def _raised(power: int) -> str:
    return "×10" + str(power).translate(str.maketrans("-" + DIGITS[0], "⁻" + DIGITS[-1]))


SIZES = st.one_of(st.integers(0, 10**6), st.integers(0, 10**60))
PLAIN = st.builds(_in_script, SIZES, st.sampled_from(DIGITS), st.sampled_from(SEPARATORS))
FRACTION = st.one_of(st.just(""), st.sampled_from((".", ",", "٫", "/")).flatmap(lambda mark: PLAIN.map(mark.__add__)))
POWER = st.one_of(
    st.just(""),
    st.builds(str.format, st.sampled_from(POWERS), st.one_of(st.integers(0, 99), st.integers(0, 10**9))),
    st.integers(-(10**6), 10**6).map(_raised),
)
SIGN = st.sampled_from(("", "", "-", "−", "+", "~", "about "))
ONE = st.one_of(
    st.tuples(SIGN, PLAIN, FRACTION, POWER, st.sampled_from(UNITS)).map("".join),
    st.sampled_from(WORDS),
    st.sampled_from(("9" * 10_000, "1e" + "9" * 10_000, "0." + "3" * 10_000, "1,000" * 2_000)),
)
RANGE = st.one_of(
    st.builds("between {} and {}".format, ONE, ONE),
    st.builds("{} - {}".format, ONE, ONE),
    st.builds("{}–{}".format, ONE, ONE),
    st.builds("{} to {}".format, ONE, ONE),
)
TEXT = st.one_of(ONE, RANGE, st.lists(st.one_of(ONE, RANGE), max_size=4).map(" (".join))

STYLES: dict[str, Callable[[str], str]] = {
    "bare": str,
    "answer": "It is so, I think.\nANSWER: {}".format,
    "list": "[{}]".format,
    "quoted": lambda text: json.dumps([text]),
    "object": lambda text: json.dumps({"answer": text, "unit": "km2"}, ensure_ascii=False),
    "bare object": '{{"answer": {}}}'.format,
    "triple": f'("{SUBJECT}", "has member", [{{}}])'.format,
    "bullets": "- {0}\n- {0}".format,
    "fence": "```json\n[{}\n```".format,
    "sentence": "The value of it is approximately {} as of 2019.".format,
}


def _parsed(text: str, relation: Relation) -> Any:
    """A parse whose objects are fit to be cleaned, and plain digits where numbers are due."""
    parsed = parse(text, relation, SUBJECT)
    assert (parsed.state is State.ANSWERED) == bool(parsed.objects)
    for one in sifted(parsed.objects, relation, SUBJECT)[0]:
        if relation.kind == "number":
            assert re.fullmatch(r"-?[0-9]{1,15}(\.[0-9]{1,40})?", one)
    return parsed


@pytest.mark.parametrize("style", STYLES)
@given(text=TEXT, kind=st.sampled_from(sorted(KINDS)))
def test_numbers_of_all_kinds_never_raise(style: str, text: str, kind: str) -> None:
    _parsed(STYLES[style](text), KINDS[kind])


HUGE = (
    "1e30",
    "between 1 and 1e30",
    "1 - 2×10^51",
    "2×10⁵¹",
    "1e999999",
    "1E+99999999999999999999",
    "9" * 40,
    "-1e9999 to 1e9999",
    "1e-999999",
    "12 - 1000000000000000000000",
    "['1e30']",
    "ANSWER: 1e16",
)


@pytest.mark.parametrize("text", HUGE)
@pytest.mark.parametrize("relation", [AREA, SEATS], ids=["areas", "counts"])
def test_what_nobody_can_write_down_is_refused_and_no_answer(relation: Relation, text: str) -> None:
    assert _parsed(text, relation).state == State.UNPARSED


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("kind", KINDS)
def test_it_raises_in_no_style(kind: str, style: str) -> None:
    for text in HUGE:
        _parsed(STYLES[style](text), KINDS[kind])


def test_a_number_beside_an_unwritable_one_is_kept() -> None:
    assert _parsed("[12, 1e30]", AREA).objects == ("12",)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("2×10⁵ km²", "200000"),
        ("5 · 10^3", "5000"),
        ("3.2*10**3", "3200"),
        ("4×10⁻³", "0.004"),
        ("٣٬٢٥٠٫٥", "3250.5"),
        ("999 trillion", "999000000000000"),
    ],
)
def test_ways_of_writing_powers_and_scripts(text: str, number: str) -> None:
    assert read_numbers(text, AREA) == [number]


FRAGMENTS = (
    *("1", "1,", "1.", "1,000", "1e", "1 - ", "×10", "10^", "²", "(1", "٣٬", "one million ", "1e9 km2 to ", "½"),
    *(
        "\\text{1",
        "$1",
        "1 ft ",
        "5'1 ",
        "2 x ",
        "5 m 80 ",
        "two hundred and ",
        "zweihundert ",
        "in 1998 ",
        "1. ",
        "1 sq mi (",
        "-1 ",
        "<sup>2",
        "1 million ",
        "1 May 1998 ",
        "a ",
    ),
)


@pytest.mark.parametrize("fragment", FRAGMENTS)
@pytest.mark.parametrize("relation", [BAND, AREA], ids=["names", "numbers"])
def test_time_grows_no_faster_than_the_text(relation: Relation, fragment: str) -> None:
    assert in_proportion(lambda text: parse(text, relation, SUBJECT), fragment)


CASES = [json.loads(line) for line in (Path(__file__).parent / "numbers.jsonl").read_text("utf-8").splitlines()]


def _of_unit(unit: str) -> Relation:
    """A relation whose numbers have a unit; "people" stands for one that declares none."""
    if unit in ("km2", "spectators"):
        return AREA if unit == "km2" else SEATS
    shape = Shape(separators=(";", "\n"), minimum=None if unit == "°C" else 0, integer=unit == "people")
    return replace(AREA, unit=None if unit == "people" else unit, shape=shape)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['kind']}: {case['text']}")
def test_numbers_are_read_as_a_person_reads_them(case: dict[str, Any]) -> None:
    relation = _of_unit(case["unit"])
    assert read_numbers(case["text"], relation) == case["numbers"]
    for number in case["numbers"]:  # cleaning reads what was read again
        assert read_numbers(number, relation) == [number]


@pytest.mark.parametrize(
    ("language", "question", "text", "number"),
    [
        ("", "Wie groß ist die Fläche von {subject}?", "357.022 km²", "357022"),
        ("de", AREA.question, "357.022 km²", "357022"),
        ("de", AREA.question, "12,375 km²", "12.375"),
        ("de-CH", AREA.question, "357.022 km²", "357.022"),
        ("de", AREA.question, "The area is 357.022 km², which includes lakes.", "357.022"),
        ("xx", AREA.question, "357,022 km²", "357022"),
        ("", AREA.question, "Die Fläche beträgt 357.022 km².", "357022"),
        ("", AREA.question, "357.022 km²", "357.022"),
        ("de", AREA.question, "12.375", "12375"),
        ("de", AREA.question, "0.375", "0.375"),
        ("", AREA.question, "12.375", "12.375"),
    ],
)
def test_a_point_before_three_digits_is_read_by_the_language_of_the_reply_else_of_the_relation(
    language: str, question: str, text: str, number: str
) -> None:
    relation = replace(AREA, language=language, question=question)
    assert parse(text, relation, SUBJECT).objects == (number,)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.299 €", "1299"),
        ("12.999 Euro", "12999"),
        ("EUR 249,90", "249.9"),
        ("€ 249,90", "249.9"),
        ("79,- €", "79"),
        ("1.299,- €", "1299"),
        ("1.25", "1.25"),
    ],
)
def test_an_amount_of_money_of_a_row_means_what_it_does_in_a_reply(text: str, value: str) -> None:
    relation = replace(AREA, language="de", unit="EUR")
    assert registry.KINDS.get(relation.kind).meaning(text, relation) == Decimal(value)


@pytest.mark.parametrize("language", ["", "de", "en", "fr", "pt"])
@pytest.mark.parametrize("digits", ["1.245", "0.5", "1037", "-2.25"])
def test_an_example_of_a_prompt_is_read_as_it_was_meant(language: str, digits: str) -> None:
    relation = replace(AREA, language=language)
    shown = registry.KINDS.get("number").said(digits, relation)
    assert (read_numbers(shown, relation), "," in shown) == (
        [digits],
        language in ("de", "fr", "pt") and "." in digits,
    )
