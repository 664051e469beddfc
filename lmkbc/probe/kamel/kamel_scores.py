"""KAMEL's scores: exactly the published procedure, and one that strips what models write around answers.

Kalo and Fichtel 2022, section 5. F1 is the harmonic mean of averaged precision and recall, not a mean of F1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median, median_low
from typing import Any

import numpy as np

from lmkbc.probe.benchmark import Floats, Sheet, half_width, percent
from lmkbc.probe.kamel.kamel_data import END, LAMA, SEPARATOR, Kamel, KamelAnswer, KamelFact
from lmkbc.types import grouped

PUBLISHED: Mapping[str, Mapping[int, tuple[float, float, float]]] = {
    "GPT-J-6b": {1: (10.27, 10.20, 10.24), 5: (16.22, 15.81, 16.01), 10: (17.46, 17.13, 17.30)},
    "GPT2-xl": {1: (7.11, 7.05, 7.08), 5: (10.11, 10.00, 10.06), 10: (11.10, 11.00, 11.05)},
    "OPT-1.3b": {1: (7.02, 6.91, 6.97), 5: (10.87, 10.61, 10.74), 10: (11.50, 11.18, 11.34)},
    "OPT-6.7b": {1: (10.19, 10.09, 10.14), 5: (15.65, 15.20, 15.42), 10: (16.67, 16.24, 16.45)},
    "OPT-13b": {1: (10.96, 10.88, 10.92), 5: (16.42, 16.22, 16.32), 10: (17.76, 17.48, 17.62)},
}
"""Model -> shots -> (P, R, F1) in percent, all properties, with alternatives: the paper's main table."""

PUBLISHED_LABELS: Mapping[str, Mapping[int, float]] = {"OPT-13b": {1: 9.59, 5: 14.63, 10: 16.08}}
"""Model -> shots -> F1 in percent if only labels count."""

PUBLISHED_MAJORITY = 9.7
"""F1 in percent of answering with a property's most frequent train object."""

PUBLISHED_LAMA = {"KAMEL's facts": 23.99, "LAMA's facts": 52.90}
"""F1 in percent with 10 shots on the 40 shared properties, by the origin of the facts: table 4.

The authors' create_tables_plots.py computes it for OPT-13b.
"""

PUBLISHED_PROPERTIES: Mapping[str, float] = {
    "P4743": 93.0,
    "P541": 92.4,
    "P30": 91.6,
    "P8875": 89.5,
    "P105": 88.5,
    "P47": 0.0,
    "P569": 0.0,
    "P570": 0.0,
    "P1066": 0.0,
    "P26": 0.0,
}
"""The properties that the paper names as the best and the worst, with F1 in percent."""


@dataclass(frozen=True, slots=True)
class MeanScore:
    """Averaged precision and recall, their harmonic mean, and the number of averaged queries or properties."""

    p: float
    r: float
    f1: float
    count: int

    @classmethod
    def mean(cls, pairs: Sequence[tuple[float, float]]) -> MeanScore:
        """Return the score of some (precision, recall) pairs; 0 for none."""
        n = len(pairs) or 1
        p, r = (math.fsum(column) / n for column in (zip(*pairs, strict=True) if pairs else ((), ())))
        return cls(p, r, 2 * p * r / (p + r) if p + r else 0.0, len(pairs))


@dataclass(frozen=True, slots=True)
class KamelTable:
    """Scores by property; means over properties (all, entities, literals, LAMA's); scores by number of gold answers.

    kinds: property -> "entity", or "literal" if every object is a year or a number. half_width: half of the 95 %
    interval of the overall F1 over other queries of the same properties; None if a property has only one query.
    """

    overall: MeanScore
    half_width: float | None
    properties: Mapping[str, MeanScore]
    by_answers: Mapping[int, MeanScore]
    entities: MeanScore
    literals: MeanScore
    lama: MeanScore
    kinds: Mapping[str, str]


def parts(text: str, *, strip: bool = False) -> set[str]:
    """Return the answers in a completion, in lower case.

    strip=False: the published split. Only `%` is removed, and an answer keeps the space before it. strip=True: the
    completion ends at its first `%`. White space is stripped, and empty answers are removed.
    """
    if not strip:
        return set(text.replace(END, "").lower().split(SEPARATOR))
    return {part.strip() for part in text.split(END, 1)[0].lower().split(SEPARATOR)} - {""}


def spellings(answer: KamelAnswer, *, alternatives: bool) -> set[str]:
    """Return the accepted spellings of an object, in lower case: all names, or only its label.

    A literal without a label has its first name in place of it.
    """
    label = answer.label if answer.label is not None else answer.alternatives[0]
    names = (label, answer.shown, *answer.alternatives) if alternatives else (label,)
    return {name.lower() for name in names}


def query_score(fact: KamelFact, text: str, *, strip: bool = False, alternatives: bool = True) -> tuple[float, float]:
    """Return precision and recall of one completion. An empty one scores 0."""
    predicted = parts(text, strip=strip)
    hits = sum(not predicted.isdisjoint(spellings(answer, alternatives=alternatives)) for answer in fact.objects)
    return hits / len(predicted) if predicted else 0.0, hits / len(fact.objects) if fact.objects else 0.0


def score(answers: Iterable[tuple[KamelFact, str]], *, strip: bool = False, alternatives: bool = True) -> KamelTable:
    """Return the tables of some completions."""
    pairs = [(fact, query_score(fact, text, strip=strip, alternatives=alternatives)) for fact, text in answers]
    rows = grouped((fact.property, pair) for fact, pair in pairs)
    by_answers = grouped((len(fact.objects), pair) for fact, pair in pairs)
    objects = grouped((fact.property, answer.literal) for fact, _ in pairs for answer in fact.objects)
    literals = {name: all(objects[name]) for name in rows}
    per = {name: MeanScore.mean(rows[name]) for name in sorted(rows, key=lambda name: int(name[1:]))}

    def over(names: Iterable[str]) -> MeanScore:
        return MeanScore.mean([(per[name].p, per[name].r) for name in names])

    return KamelTable(
        overall=over(per),
        half_width=half_width(list(rows.values()), _f1),
        properties=per,
        by_answers={count: MeanScore.mean(by_answers[count]) for count in sorted(by_answers)},
        entities=over(name for name in per if not literals[name]),
        literals=over(name for name in per if literals[name]),
        lama=over(name for name in per if name in LAMA),
        kinds={name: "literal" if literals[name] else "entity" for name in per},
    )


def _f1(means: Floats) -> Floats:
    """Return F1 of resampled precision and recall by property."""
    p, r = means.mean(axis=1).T
    whole = p + r
    f1: Floats = 2 * p * r / np.where(whole > 0, whole, 1)
    return f1


WITHIN = (0, 1, 5, 10, 50)
"""Greatest deviations in years for the shares of the table; 0 is exact."""
ALL = "*** All ***"
_YEAR = re.compile(r"(?<![0-9.,])[0-9]{3,4}(?![0-9])")


Years = Mapping[str, Mapping[str, Any]]
"""Property -> scores of years; the last is for all questions (`ALL`)."""


def _year_score(deviations: Sequence[int | None]) -> dict[str, Any]:
    """Return the score of some deviations in years; None stands for an answer without a year.

    "mean", "median": over answers with a year; None without any. "within": years -> share of questions whose answer
    deviates by at most so many. "no_year": share of answers without a year.
    """
    off = [years for years in deviations if years is not None]
    return {
        "questions": len(deviations),
        "mean": fmean(off) if off else None,
        "median": float(median(off)) if off else None,
        "within": {most: sum(years <= most for years in off) / len(deviations) for most in WITHIN},
        "no_year": 1 - len(off) / len(deviations),
    }


def year_properties(data: Kamel, names: Iterable[str]) -> list[str]:
    """Return the properties with years: more than half of their train facts have only years as objects."""
    train = {name: data.of(name, "train") for name in names}
    return [
        name
        for name, facts in train.items()
        if 2 * sum(0 < len(fact.objects) == len(gold_years(fact)) for fact in facts) > len(facts)
    ]


def gold_years(fact: KamelFact) -> list[int]:
    """Return the years among a fact's objects: literals of three or four digits."""
    return [int(answer.shown) for answer in fact.objects if answer.literal and _YEAR.fullmatch(answer.shown)]


def answered_year(text: str) -> int | None:
    """Return the first number of three or four digits in an answer, before its end mark."""
    match = _YEAR.search(text.split(END, 1)[0])
    return None if match is None else int(match[0])


def year_table(data: Kamel, replies: Iterable[tuple[KamelFact, str]]) -> dict[str, Years]:
    """Return the deviations for questions about years. If a question has several years, the nearest one counts.

    "answers": scores of a model's answers. "control": scores of the train split's median year.
    """
    facts = list(replies)
    properties = set(year_properties(data, {fact.property: None for fact, _ in facts}))
    asked = [(fact, gold, text) for fact, text in facts if fact.property in properties and (gold := gold_years(fact))]
    train = data.train_of([fact for fact, _, _ in asked])
    taught = grouped((fact.property, year) for fact in train for year in gold_years(fact))
    medians = {name: median_low(years) for name, years in taught.items()}

    def scores(deviations: Iterable[tuple[str, int | None]]) -> Years:
        per = grouped(deviations)
        whole = {ALL: [years for of_property in per.values() for years in of_property]} if per else {}
        return {name: _year_score(of_property) for name, of_property in (per | whole).items()}

    return {
        "answers": scores((fact.property, _off(gold, answered_year(text))) for fact, gold, text in asked),
        "control": scores((fact.property, _off(gold, medians.get(fact.property))) for fact, gold, _ in asked),
    }


def _off(gold: Iterable[int], year: int | None) -> int | None:
    return None if year is None else min(abs(right - year) for right in gold)


def by_year(table: Mapping[str, Years]) -> Sheet:
    """Return the table: the answers, and on the right the median year of the train split."""
    shares = ["exact %", *(f"within {most} %" for most in WITHIN[1:])]
    heads = ["property", "questions", "off by, mean", "median", *shares, "no year %"]
    heads += ["train's median: off by, mean", "median", "exact %", "within 10 %"]
    rows: list[list[Any]] = []
    for name, model in table["answers"].items():
        control = table["control"][name]
        off = [model["mean"], model["median"], *percent(*model["within"].values(), model["no_year"])]
        beside = [control["mean"], control["median"], *percent(control["within"][0], control["within"][10])]
        rows.append([name, model["questions"], *off, *beside])
    return Sheet(heads, rows, "years", "Years: how far answers are off")
