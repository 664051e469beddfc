"""Number of lines in which the two names of a fact occur together, and F1 by this number.

The paper's figure 2 shows F1 by a relevance score of Elasticsearch for the fact. Its query and its text are not known
here. So lines of a given text are counted that hold both names, as whole words, in any case.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from lmkbc.errors import InputError
from lmkbc.names import NameTree
from lmkbc.probe.benchmark import Sheet, percent
from lmkbc.probe.kmir.kmir_scores import f1_half_width
from lmkbc.probe.kmir.questions import TYPES, Question, TypedTriple
from lmkbc.probe.kmir.schema import Closure, Schema, Triple
from lmkbc.report.figures import BLUE, GREEN, INK, ORANGE, Plot, canvas
from lmkbc.types import grouped

Pair = tuple[str, str]
Words = tuple[str, ...]
_WORD = re.compile(r"\w+")


def pair_counts(pairs: Mapping[str, Pair], lines: Iterable[str]) -> dict[str, int]:
    """Return question id -> number of lines that hold both names of its pair. Only names are in memory.

    A name inside a longer one counts: a line about the Paris Metro names Paris.
    """
    names, seconds, counts = NameTree(), defaultdict[Words, set[Words]](set), Counter[tuple[Words, Words]]()
    wanted = {question: (_words(first), _words(second)) for question, (first, second) in pairs.items()}
    for first, second in wanted.values():
        names.add(first)
        names.add(second)
        seconds[first].add(second)
    for words in map(_words, lines):
        held = {words[start:end] for start, end in names.find(words)}
        counts.update((first, second) for first in held & seconds.keys() for second in seconds[first] & held)
    return {question: counts[pair] for question, pair in wanted.items()}


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
        asks_name = question.type in {"completion", "reasoning"}
        if (
            triple is None
            or triple.relation != question.relation
            or (asks_name and {triple.subject, triple.object}.isdisjoint(question.answer))
        ):
            raise InputError(
                f"question {question.id!r} was not built from these triples by this schema: "
                "give --triples and --schema as 'kmir build' had them"
            )
        pairs[question.id] = triple.subject, triple.object
    return pairs


@dataclass(frozen=True, slots=True)
class _CountBin:
    """Mean F1 of the questions whose pair occurs in `low` to `high` lines. half_width: half of its 95 % interval."""

    low: int
    high: int
    f1: float
    half_width: float | None
    questions: int


@dataclass(frozen=True, slots=True)
class _CountCurve:
    """F1 by count. correlation: Spearman's, of count and F1 over questions; None if one of them is constant."""

    bins: Sequence[_CountBin]
    correlation: float | None


def curves(graded: Iterable[tuple[Question, float]], counts: Mapping[str, int]) -> dict[str, _CountCurve]:
    """Return question type -> F1 by count. counts: by question id."""
    by_type = grouped((question.type, (question, f1)) for question, f1 in graded)
    return {kind: _curve(rows, counts) for kind, rows in sorted(by_type.items())}


def _curve(rows: Sequence[tuple[Question, float]], counts: Mapping[str, int]) -> _CountCurve:
    from scipy.stats import spearmanr

    own, scores = [counts[question.id] for question, _ in rows], [f1 for _, f1 in rows]
    parts = grouped(zip(map(_place, own), rows, strict=True))
    bins = [_bin(place, part) for place, part in sorted(parts.items())]
    varied = len(set(own)) > 1 < len(set(scores))
    return _CountCurve(bins, float(spearmanr(own, scores).statistic) if varied else None)


def _place(count: int) -> int:
    """Return the number of a count's bin: 0, 1 to 3, 4 to 15, each four times as wide as the one before."""
    return (count.bit_length() + 1) // 2


def _bin(place: int, rows: Sequence[tuple[Question, float]]) -> _CountBin:
    low, high = (4 ** (place - 1), 4**place - 1) if place else (0, 0)
    return _CountBin(low, high, fmean(f1 for _, f1 in rows), f1_half_width(rows), len(rows))


def by_cooccurrence(found: Mapping[str, _CountCurve]) -> Sheet:
    """Return the table of F1 by the number of lines with both names, with its figure."""
    rows: list[list[Any]] = []
    for kind in filter(found.get, TYPES):
        bins = found[kind].bins
        rows.extend([kind, _lines(one), *percent(one.f1, one.half_width), one.questions, None] for one in bins)
        rows[-1][-1] = found[kind].correlation
    heads = ["type", "lines", "F1 %", "+- (95 % interval)", "questions", "Spearman"]
    title = "F1 by how many lines hold subject and object, after the paper's figure 2"
    return Sheet(heads, rows, "co-occurrence", title, lambda: _drawn(found))


def _lines(one: _CountBin) -> str:
    return str(one.low) if one.low == one.high else f"{one.low}-{one.high}"


def _drawn(found: Mapping[str, _CountCurve]) -> Plot:
    caption = "Vertical bars are 95 % intervals. A bin is four times as wide as the one before."
    bins = {one.low: _lines(one) for curve in found.values() for one in curve.bins}
    places = {low: place for place, low in enumerate(sorted(bins))}
    with canvas("co-occurrence", "F1 by how many lines hold subject and object", caption) as drawn:
        axes = drawn.axes
        styles = zip(filter(found.get, TYPES), (BLUE, ORANGE, GREEN, INK), "osD^", strict=False)
        for number, (kind, colour, mark) in enumerate(styles):
            curve = found[kind].bins
            at = [places[one.low] + 0.06 * (number - 1.5) for one in curve]
            axes.plot(at, [100 * one.f1 for one in curve], f"{mark}-", color=colour, ms=4, lw=1.2, label=kind)
            for place, one in zip(at, curve, strict=True):
                if one.half_width is not None:
                    ends = [100 * (one.f1 - one.half_width), 100 * (one.f1 + one.half_width)]
                    axes.plot([place] * 2, ends, color=colour, lw=0.9)
        axes.set(xticks=range(len(places)), xticklabels=map(bins.get, places), ylim=(0, 102))
        axes.set(xlabel="lines that hold both names", ylabel="F1 %")
        drawn.figure.legend(loc="outside lower center", ncols=4)
    return drawn.plot
