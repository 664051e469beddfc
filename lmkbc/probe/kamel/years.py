"""Deviation of a model's years from the right ones, compared with the median year of the train split.

Kalo and Fichtel 2022 study years separately, since a wrong year may still be close. The properties with years are found
from their train facts.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmkbc.groups import grouped
from lmkbc.probe.benchmark import Sheet, percent
from lmkbc.probe.kamel.dataset import Kamel, KamelFact
from lmkbc.probe.kamel.score import END

WITHIN = (0, 1, 5, 10, 50)
"""Greatest deviations in years for the shares of the table; 0 is exact."""
ALL = "*** All ***"
_YEAR = re.compile(r"(?<![0-9.,])[0-9]{3,4}(?![0-9])")


@dataclass(frozen=True, slots=True)
class YearScore:
    """Deviations in years. mean, median: over answers with a year; None without any.

    within: years -> share of questions whose answer deviates by at most so many. no_year: share of answers without a
    year.
    """

    questions: int
    mean: float | None
    median: float | None
    within: Mapping[int, float]
    no_year: float

    @classmethod
    def of(cls, deviations: Sequence[int | None]) -> YearScore:
        """Return the score of some deviations; None stands for an answer without a year."""
        off = [years for years in deviations if years is not None]
        return cls(
            len(deviations),
            math.fsum(off) / len(off) if off else None,
            float(statistics.median(off)) if off else None,
            {most: sum(years <= most for years in off) / len(deviations) for most in WITHIN},
            1 - len(off) / len(deviations),
        )


@dataclass(frozen=True, slots=True)
class YearTable:
    """Scores of a model's answers and of the train split's median year, by property; the last is for all questions."""

    answers: Mapping[str, YearScore]
    control: Mapping[str, YearScore]


def year_properties(data: Kamel, names: Iterable[str]) -> list[str]:
    """Return the properties with years: more than half of their train facts have only years as objects."""
    train = {name: data.of(name, "train") for name in names}
    return [name for name, facts in train.items() if 2 * sum(map(_of_years, facts)) > len(facts)]


def gold_years(fact: KamelFact) -> list[int]:
    """Return the years among a fact's objects: literals of three or four digits."""
    return [int(answer.shown) for answer in fact.objects if answer.literal and _YEAR.fullmatch(answer.shown)]


def _of_years(fact: KamelFact) -> bool:
    return 0 < len(fact.objects) == len(gold_years(fact))


def answered_year(text: str) -> int | None:
    """Return the first number of three or four digits in an answer, before its end mark."""
    found = _YEAR.search(text.split(END, 1)[0])
    return None if found is None else int(found[0])


def year_table(data: Kamel, replies: Iterable[tuple[KamelFact, str]]) -> YearTable:
    """Return the deviations for questions about years. If a question has several years, the nearest one counts."""
    facts = list(replies)
    known = set(year_properties(data, {fact.property: None for fact, _ in facts}))
    asked = [(fact, gold, text) for fact, text in facts if fact.property in known and (gold := gold_years(fact))]
    train = data.train_of([fact for fact, _, _ in asked])
    taught = grouped((fact.property, year) for fact in train for year in gold_years(fact))
    medians = {name: statistics.median_low(years) for name, years in taught.items()}

    def scores(deviations: Iterable[tuple[str, int | None]]) -> dict[str, YearScore]:
        per = grouped(deviations)
        whole = {ALL: [years for own in per.values() for years in own]} if per else {}
        return {name: YearScore.of(own) for name, own in (per | whole).items()}

    return YearTable(
        scores((fact.property, _off(gold, answered_year(text))) for fact, gold, text in asked),
        scores((fact.property, _off(gold, medians.get(fact.property))) for fact, gold, _ in asked),
    )


def _off(gold: Iterable[int], year: int | None) -> int | None:
    return None if year is None else min(abs(right - year) for right in gold)


def by_year(table: YearTable) -> Sheet:
    """Return the table: the answers, and on the right the median year of the train split."""
    shares = ["exact %", *(f"within {most} %" for most in WITHIN[1:])]
    heads = ["property", "questions", "off by, mean", "median", *shares, "no year %"]
    heads += ["train's median: off by, mean", "median", "exact %", "within 10 %"]
    rows: list[list[Any]] = []
    for name, own in table.answers.items():
        beside = table.control[name]
        off = [own.mean, own.median, *percent(*own.within.values(), own.no_year)]
        control = [beside.mean, beside.median, *percent(beside.within[0], beside.within[10])]
        rows.append([name, own.questions, *off, *control])
    return Sheet(heads, rows, "years", "Years: how far answers are off")
