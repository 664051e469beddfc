"""The official scores: per-row hits, precision, recall and F1, and the averages that the editions print.

Four scorers cover the five editions; an edition's module picks one and names its average. All are exact
re-statements of the organisers' published procedures, oddities included, because published numbers depend on them.
Normalisation is memoised and rows are scored without building per-row dictionaries.
"""

from __future__ import annotations

import math
import string
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Protocol

Pair = tuple[str, str]
"""(subject, relation): what every official scorer indexes rows by."""


class RowScore(NamedTuple):
    """Precision, recall and F1 of one query, and the counts behind them (-1 where the scorer keeps none)."""

    p: float
    r: float
    f1: float
    hits: int
    predicted: int
    gold: int


class Scorer(Protocol):
    """How one edition compares the answers of one query with the gold."""

    def key(self, text: str) -> str:
        """The form under which two answers are the same answer."""
        ...

    def matches(self, value: str, gold: Sequence[Any], relation: str) -> tuple[int, ...]:
        """Indices of the gold objects that one answer finds."""
        ...

    def count(self, matches: Sequence[tuple[int, ...]]) -> int:
        """Hits of a set of distinct answers, given what each of them finds."""
        ...

    def score(self, predicted: Any, gold: Any, relation: str) -> RowScore:
        """Score one row's raw column values."""
        ...


def f1(p: float, r: float) -> float:
    """Harmonic mean, 0 where both are 0."""
    return 2 * p * r / (p + r) if p + r else 0.0


_PUNCTUATION = str.maketrans("", "", string.punctuation)
_APOSTROPHES = "'\u2019\u2018\u02bb\u02bc\u02b9`\u00b4"
_DROP_APOSTROPHES = str.maketrans("", "", _APOSTROPHES)
_SYMBOLS = frozenset("+$<=>|~^")


@lru_cache(maxsize=1 << 18)
def plain_key(text: str) -> str:
    """2022's normal form: ASCII punctuation deleted, lower case, stripped."""
    return text.translate(_PUNCTUATION).lower().strip()


@lru_cache(maxsize=1 << 18)
def folded_key(text: str) -> str:
    """2026's normal form: apostrophes dropped, NFKD, case-folded, no diacritics, punctuation to single spaces."""
    text = text.strip().translate(_DROP_APOSTROPHES)
    if text.isascii():
        text = text.casefold()
        if text.replace(" ", "").isalnum():
            return " ".join(text.split())
    else:
        text = unicodedata.normalize("NFKD", text).casefold()
    kept = []
    for char in text:
        if char in _APOSTROPHES or unicodedata.combining(char):
            continue
        kept.append(" " if char in _SYMBOLS or unicodedata.category(char)[0] == "P" else char)
    return " ".join("".join(kept).split())


@lru_cache(maxsize=1 << 16)
def number(text: Any) -> float | None:
    """The scorers' reading of a number (thousands commas allowed), None where it is none."""
    try:
        return float(text.replace(",", "").strip())
    except (ValueError, AttributeError):
        return None


def _row(hits: int, predicted: int, gold: int) -> RowScore:
    p = hits / predicted if predicted else 1.0
    r = hits / gold if gold else 1.0
    return RowScore(p, r, f1(p, r), hits, predicted, gold)


@dataclass(frozen=True, slots=True)
class AliasScorer:
    """2022: a gold object is found when any of its aliases is predicted, so one string may find several.

    Both sides are normalised with `plain_key`; predictions form a set. No prediction has precision 1; a lone "",
    "none" or "null" counts as no prediction; an empty gold has recall 1 and precision 1 only for no prediction.
    """

    def key(self, text: str) -> str:
        """Normal form of an answer."""
        return plain_key(text)

    def matches(self, value: str, gold: Sequence[Sequence[str]], relation: str) -> tuple[int, ...]:
        """Indices of the gold objects that one answer finds."""
        key = plain_key(value)
        return tuple(i for i, names in enumerate(gold) if any(plain_key(name) == key for name in names))

    def count(self, matches: Sequence[tuple[int, ...]]) -> int:
        """Hits of a set of distinct answers."""
        return len({index for found in matches for index in found})

    def score(self, predicted: Any, gold: Any, relation: str) -> RowScore:
        """Score one row: predicted is a list of strings, gold a list of alias lists."""
        keys = {plain_key(value) for value in predicted if value is not None}
        if not keys or (len(keys) == 1 and next(iter(keys)) in ("", "none", "null")):
            return RowScore(1.0, 0.0 if gold else 1.0, 0.0 if gold else 1.0, 0, 0, len(gold))
        hits = 0
        for names in gold:
            for name in names:
                if plain_key(name) in keys:
                    hits += 1
                    break
        p = min(hits / len(keys), 1.0)
        r = hits / len(gold) if gold else 1.0
        return RowScore(p, r, f1(p, r), hits, len(keys), len(gold))


@dataclass(frozen=True, slots=True)
class IdScorer:
    """2023 and 2024: exact QIDs or literals. 2023 counts repeated predictions, so recall can pass 1 there.

    distinct: compare sets (2024) instead of the lists as written (2023). An empty list has precision 1. A gold of
    [""] is 2023's "no object": recall 1 whatever is predicted, and a predicted "" counts as a correct answer.
    """

    distinct: bool

    def key(self, text: str) -> str:
        """An id is its own normal form."""
        return text

    def matches(self, value: str, gold: Sequence[str], relation: str) -> tuple[int, ...]:
        """Indices of the gold objects that one answer finds."""
        return tuple(i for i, other in enumerate(gold) if other == value)[:1]

    def count(self, matches: Sequence[tuple[int, ...]]) -> int:
        """Hits of a set of distinct answers."""
        return sum(1 for found in matches if found)

    def score(self, predicted: Any, gold: Any, relation: str) -> RowScore:
        """Score one row of two lists of ids; a value that is no list scores 0, as it does officially."""
        if self.distinct:
            predicted, gold = set(predicted), set(gold)
            return _row(len(predicted & gold), len(predicted), len(gold))
        try:
            hits = 0
            for value in predicted:
                if value in gold:
                    hits += 1
            p = min(hits / len(predicted), 1.0) if predicted else 1.0
            r = 1.0 if not gold or gold == [""] else hits / len(gold)
            return RowScore(p, r, f1(p, r), hits, len(predicted), len(gold))
        except TypeError:
            return RowScore(0.0, 0.0, 0.0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class ValueScorer:
    """2025: exact strings after stripping; numbers within a tolerance of any gold number.

    Every prediction that finds something is a hit, so several numbers near one gold number push recall past 1.
    """

    numeric: frozenset[str]
    tolerance: float = 0.05

    def key(self, text: str) -> str:
        """Normal form of an answer."""
        return text.strip()

    def matches(self, value: str, gold: Sequence[str], relation: str) -> tuple[int, ...]:
        """Indices of the gold objects that one answer finds."""
        if relation not in self.numeric:
            return tuple(i for i, other in enumerate(gold) if other == value.strip())[:1]
        return tuple(i for i, other in enumerate(gold) if self._near(number(value), number(other)))[:1]

    def count(self, matches: Sequence[tuple[int, ...]]) -> int:
        """Hits of a set of distinct answers."""
        return sum(1 for found in matches if found)

    def _near(self, value: float | None, gold: float | None) -> bool:
        return value is not None and bool(gold) and abs(value - gold) / gold <= self.tolerance  # type: ignore[operator]

    def score(self, predicted: Any, gold: Any, relation: str) -> RowScore:
        """Score one row of two lists of strings, each read as a set."""
        predicted, gold = set(predicted), set(gold)
        if relation in self.numeric:
            numbers = [number(other) for other in gold]
            hits = sum(1 for v in predicted if any(self._near(number(v), other) for other in numbers))
        else:
            hits = sum(1 for value in predicted if value.strip() in gold)
        return _row(hits, len(predicted), len(gold))


@lru_cache(maxsize=1 << 16)
def _folded_names(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(map(folded_key, names))


@dataclass(frozen=True, slots=True)
class MatchingScorer:
    """2026: alias lists, each prediction matched to at most one gold object (maximum bipartite matching).

    Predictions are distinct under `folded_key`; a nested list stands for its first element; numbers are compared
    with the first alias within a tolerance, each gold number found once.
    """

    numeric: frozenset[str]
    tolerance: float = 0.05

    def key(self, text: str) -> str:
        """Normal form of an answer."""
        return folded_key(text)

    def matches(self, value: str, gold: Sequence[Sequence[str]], relation: str) -> tuple[int, ...]:
        """Indices of the gold objects that one answer could find."""
        if relation in self.numeric:
            given = number(value)
            return tuple(i for i, names in enumerate(gold) if names and self._near(given, number(names[0])))
        key = folded_key(value)
        return tuple(i for i, names in enumerate(gold) if key in _folded_names(tuple(names)))

    def count(self, matches: Sequence[tuple[int, ...]]) -> int:
        """Hits of a set of distinct answers: the size of a maximum matching (Kuhn's augmenting paths)."""
        owner: dict[int, int] = {}

        def augment(answer: int, seen: set[int]) -> bool:
            for index in matches[answer]:
                if index not in seen:
                    seen.add(index)
                    if index not in owner or augment(owner[index], seen):
                        owner[index] = answer
                        return True
            return False

        return sum(augment(answer, set()) for answer in range(len(matches)) if matches[answer])

    def _near(self, value: float | None, gold: float | None) -> bool:
        return value is not None and bool(gold) and abs(value - gold) / gold <= self.tolerance  # type: ignore[operator]

    def score(self, predicted: Any, gold: Any, relation: str) -> RowScore:
        """Score one row: predicted is a list of strings (or lists), gold a list of alias lists (or strings)."""
        if gold and isinstance(gold[0], str):
            gold = [[name] for name in gold]
        answers: dict[str, str] = {}
        for value in predicted:
            text = value[0] if isinstance(value, list) and value else value
            if isinstance(text, str):
                answers.setdefault(folded_key(text), text)
        if relation in self.numeric:
            hits = self._numeric_hits(answers.values(), [number(names[0]) if names else None for names in gold])
        else:
            hits = self._string_hits(answers, [_folded_names(tuple(names)) for names in gold])
        return _row(hits, len(answers), len(gold))

    def _string_hits(self, answers: Iterable[str], gold: Sequence[frozenset[str]]) -> int:
        holders: dict[str, list[int]] = {}
        for index, names in enumerate(gold):
            for name in names:
                holders.setdefault(name, []).append(index)
        found = [tuple(holders[key]) for key in answers if key in holders]
        if all(len(indices) == 1 for indices in found):
            return len(set(found))
        return self.count(found)

    def _numeric_hits(self, answers: Iterable[str], gold: Sequence[float | None]) -> int:
        free = set(range(len(gold)))
        for value in map(number, answers):
            near = next((i for i in sorted(free) if self._near(value, gold[i])), None)
            free.discard(-1 if near is None else near)
        return len(gold) - len(free)


@dataclass(frozen=True, slots=True)
class Summary:
    """What the official tables print for one relation, or over all of them."""

    p: float
    r: float
    f1: float
    micro_p: float
    micro_r: float
    micro_f1: float
    average_predictions: float
    empty_predictions: int
    rows: int


@dataclass(frozen=True, slots=True)
class Table:
    """An official result: the overall summary, one per relation (by name), and the rows where asked for."""

    overall: Summary
    relations: dict[str, Summary]
    rows: list[tuple[Pair, RowScore]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Metric:
    """An edition's scorer, what it averages over, and what it does with a query that the file lacks.

    average: "relation" (mean of relation means) or "row". missing: "empty" (an empty answer) or "refuse" (the
    official script stops). detailed: whether the official table has micro averages and prediction counts.
    """

    scorer: Scorer
    average: Literal["relation", "row"]
    missing: Literal["empty", "refuse"] = "empty"
    detailed: bool = False

    def evaluate(self, predicted: Mapping[Pair, Any], gold: Mapping[Pair, Any], rows: bool = False) -> Table:
        """Score all gold pairs. KeyError names a pair that is missing where the edition refuses that."""
        score = self.scorer.score
        totals: dict[str, _Total] = {}
        kept: list[tuple[Pair, RowScore]] = []
        for pair, objects in gold.items():
            relation = pair[1]
            answer = predicted[pair] if self.missing == "refuse" else predicted.get(pair, ())
            result = score(answer, objects, relation)
            total = totals.get(relation)
            if total is None:
                total = totals[relation] = _Total()
            total.add(result)
            if rows:
                kept.append((pair, result))
        kept.sort(key=lambda row: (row[0][1], row[0][0]))
        relations = {relation: totals[relation].summary() for relation in sorted(totals)}
        return Table(self._overall(relations, totals.values()), relations, kept)

    def _overall(self, relations: Mapping[str, Summary], totals: Iterable[_Total]) -> Summary:
        everything = _Total()
        for total in totals:
            everything.merge(total)
        pooled = everything.summary()
        if self.average == "row" or not relations:
            return pooled
        means = {n: math.fsum(getattr(s, n) for s in relations.values()) / len(relations) for n in ("p", "r", "f1")}
        return replace(pooled, **means)


class _Total:
    """Running sums of one relation."""

    __slots__ = ("empty", "f1", "gold", "hits", "p", "predicted", "r", "rows")

    def __init__(self) -> None:
        self.p = self.r = self.f1 = 0.0
        self.hits = self.predicted = self.gold = self.empty = self.rows = 0

    def add(self, row: RowScore) -> None:
        p, r, harmonic, hits, predicted, gold = row
        self.p += p
        self.r += r
        self.f1 += harmonic
        self.hits += hits
        self.predicted += predicted
        self.gold += gold
        self.empty += not predicted
        self.rows += 1

    def merge(self, other: _Total) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def summary(self) -> Summary:
        n = self.rows or 1
        micro_p = self.hits / self.predicted if self.predicted else 1.0
        micro_r = self.hits / self.gold if self.gold else 1.0
        macro = (self.p / n, self.r / n, self.f1 / n)
        micro = (micro_p, micro_r, f1(micro_p, micro_r))
        return Summary(*macro, *micro, self.predicted / n, self.empty, self.rows)
