"""How far years are off, and which properties have years."""

from __future__ import annotations

import pytest

from lmkbc.probe.kamel.dataset import Kamel, KamelAnswer, KamelFact
from lmkbc.probe.kamel.score import ALL, answered_year, by_year, year_properties, year_table


def facts(name: str, *objects: str) -> tuple[KamelFact, ...]:
    return tuple(KamelFact(name, f"train {n}", (KamelAnswer(one, chosen=one),)) for n, one in enumerate(objects))


def asked(name: str, subject: str, *years: str) -> KamelFact:
    return KamelFact(name, subject, tuple(KamelAnswer(None, (f"1 May {year}", year), year) for year in years))


DATA = Kamel(
    {
        ("P569", "train"): (
            *facts("P569", "1900", "1910", "950", "1990", "25"),
            KamelFact("P569", "Bach", (KamelAnswer("1685"),)),
        ),
        ("P2044", "train"): facts("P2044", "120", "15", "30000"),
        ("P36", "train"): facts("P36", "Paris", "1984"),
        ("P31", "train"): (),
    }
)


def test_properties_of_years_are_read_from_train() -> None:
    assert year_properties(DATA, ["P569", "P2044", "P36", "P31"]) == ["P569"]


@pytest.mark.parametrize(
    ("text", "year"),
    [
        ("1949%", 1949),
        ("16 December 949; 1950", 949),
        ("in the 1950s", 1950),
        ("12,500 or 3.141 or 12345", None),
        ("no idea%\n1949", None),
    ],
)
def test_a_year_is_read_from_an_answer(text: str, year: int | None) -> None:
    assert answered_year(text) == year


def test_deviations_of_answers_and_of_the_median_year() -> None:
    replies = [
        (asked("P569", "Bach", "1685"), "1685%"),
        (asked("P569", "Haydn", "1732", "1742"), "about 1739"),
        (asked("P569", "Mozart", "1756"), "Salzburg"),
        (asked("P569", "Nero", "37"), "1900"),  # no year of three digits: not asked about
        (asked("P2044", "hill", "120"), "1900"),
    ]
    table = year_table(DATA, replies)
    own = table.answers["P569"]
    assert (own.questions, own.mean, own.median, own.no_year) == (3, 1.5, 1.5, pytest.approx(1 / 3))
    assert dict(own.within) == pytest.approx({0: 1 / 3, 1: 1 / 3, 5: 2 / 3, 10: 2 / 3, 50: 2 / 3})
    control = table.control["P569"]  # 1900, the lower median without Bach himself
    assert (control.mean, control.median) == (pytest.approx((215 + 158 + 144) / 3), 158)
    assert table.answers[ALL] == own
    (row, _) = by_year(table).rows
    assert row[:4] == ["P569", 3, 1.5, 1.5]


def test_without_years_there_is_nothing_to_show() -> None:
    assert not year_table(DATA, [(asked("P2044", "hill", "120"), "120")]).answers
    silent = year_table(DATA, [(asked("P569", "Bach", "1685"), "")]).answers["P569"]
    assert (silent.mean, silent.median, silent.no_year) == (None, None, 1.0)
