"""Number of lines in which the two names of a fact occur together, and F1 by this number.

The paper's figure 2 shows F1 by a relevance score of Elasticsearch for the fact. Its query and its text are not known
here. So lines of a given text are counted that hold both names, as whole words, in any case.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lmkbc.errors import InputError
from lmkbc.groups import grouped
from lmkbc.names import NameTree
from lmkbc.probe.kmir.axioms import Closure, Triple
from lmkbc.probe.kmir.files import Question, TypedTriple
from lmkbc.probe.kmir.schema import Schema
from lmkbc.probe.kmir.score import f1_half_width
from lmkbc.select.ranking import Floats

Pair = tuple[str, str]
Words = tuple[str, ...]
_WORD = re.compile(r"\w+")


class PairCounter:
    """Counts lines that hold both names of a pair. Only names are in memory, for a text of any length.

    A name inside a longer one counts: a line about the Paris Metro names Paris.
    """

    def __init__(self, pairs: Iterable[Pair]) -> None:
        self._names = NameTree()
        self._counts: dict[tuple[Words, Words], int] = {}
        self._seconds: dict[Words, set[Words]] = {}
        for pair in pairs:
            first, second = map(_words, pair)
            for name in (first, second):
                self._names.add(name)
            self._counts[first, second] = 0
            self._seconds.setdefault(first, set()).add(second)

    def read(self, lines: Iterable[str]) -> None:
        """Count the lines of a text."""
        for words in map(_words, lines):
            held = {words[start:end] for start, end in self._names.find(words)}
            for first in held:
                for second in self._seconds.get(first, set()) & held:
                    self._counts[first, second] += 1

    def count(self, pair: Pair) -> int:
        """Return the number of lines with both names of a given pair."""
        first, second = map(_words, pair)
        return self._counts[first, second]


def _words(text: str) -> Words:
    return tuple(_WORD.findall(text.casefold()))


def asked_pairs(questions: Sequence[Question], facts: Sequence[TypedTriple], schema: Schema) -> dict[str, Pair]:
    """Return question id -> subject and object: of its fact, or of the inferred fact.

    InputError if the questions were built from other triples, or with another schema.
    """
    inferred: list[Triple] = []
    if any(question.type == "reasoning" for question in questions):
        inferred = list(Closure((row.triple for row in facts), schema).steps)
    pairs = {}
    for question in questions:
        if question.type == "reasoning":
            number = question.id.removeprefix("reasoning-")
            triple = inferred[int(number)] if number.isdecimal() and int(number) < len(inferred) else None
        else:
            triple = facts[question.fact].triple if 0 <= question.fact < len(facts) else None
        if triple is None or not _fits(question, triple):
            raise InputError(
                f"question {question.id!r} was not built from these triples by this schema: "
                "give --triples and --schema as 'kmir build' had them"
            )
        pairs[question.id] = triple.subject, triple.object
    return pairs


def _fits(question: Question, triple: Triple) -> bool:
    names_it = question.type not in {"completion", "reasoning"} or {triple.subject, triple.object} & {*question.answer}
    return triple.relation == question.relation and bool(names_it)


@dataclass(frozen=True, slots=True)
class CountBin:
    """Mean F1 of the questions whose pair occurs in `low` to `high` lines. half_width: half of its 95 % interval."""

    low: int
    high: int
    f1: float
    half_width: float | None
    questions: int


@dataclass(frozen=True, slots=True)
class CountCurve:
    """F1 by count. correlation: Spearman's, of count and F1 over questions; None if one of them is constant."""

    bins: Sequence[CountBin]
    correlation: float | None


def curves(graded: Iterable[tuple[Question, float]], counts: Mapping[str, int]) -> dict[str, CountCurve]:
    """Return question type -> F1 by count. counts: by question id."""
    by_type = grouped((question.type, (question, f1)) for question, f1 in graded)
    return {kind: _curve(rows, counts) for kind, rows in sorted(by_type.items())}


def _curve(rows: Sequence[tuple[Question, float]], counts: Mapping[str, int]) -> CountCurve:
    own = [counts[question.id] for question, _ in rows]
    parts = grouped(zip(map(_place, own), rows, strict=True))
    bins = [_bin(place, part) for place, part in sorted(parts.items())]
    return CountCurve(bins, rank_correlation(own, [f1 for _, f1 in rows]))


def _place(count: int) -> int:
    """Return the number of a count's bin: 0, 1 to 3, 4 to 15, each four times as wide as the one before."""
    return (count.bit_length() + 1) // 2


def _bin(place: int, rows: Sequence[tuple[Question, float]]) -> CountBin:
    low, high = (4 ** (place - 1), 4**place - 1) if place else (0, 0)
    return CountBin(low, high, float(np.mean([f1 for _, f1 in rows])), f1_half_width(rows), len(rows))


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return Spearman's correlation; None if all values of one are equal."""
    if len(set(first)) < 2 or len(set(second)) < 2:
        return None
    return float(np.corrcoef(_ranks(first), _ranks(second))[0, 1])


def _ranks(values: Sequence[float]) -> Floats:
    """Return the rank of each value; equal values share their mean rank."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[places]
    return ranks
