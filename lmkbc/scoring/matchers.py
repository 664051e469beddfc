"""Scorers: an edition's comparison of the answers of a query with the gold, and its test of equal answers.

Four scorers cover the five editions. They reproduce the organisers' published procedures exactly, oddities included,
because published numbers depend on them. Normal forms are memoised.

An edition without an official script has `KindScorer`. The official scripts divide by the gold with its sign, so that
a gold of -38.83 accepts 5000, and a gold of 0 accepts nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, Protocol, TypeVar

from lmkbc.kinds.kind import kind_of
from lmkbc.names import Memo, folded_key, plain_key
from lmkbc.relation import Relation

Matches = Sequence[Sequence[int]]
"""For each answer, the gold objects that it matches, without repetition."""


def most_pairs(matches: Matches) -> int:
    """Return the size of a maximum matching of answers to gold objects."""
    finding = [found for found in matches if found]
    taken: set[int] = set()
    for found in finding:
        taken |= {next((index for index in found if index not in taken), found[0])}
    within = {index for found in finding for index in found}
    if len(taken) == min(len(finding), len(within)):  # the upper bound, nearly always reached
        return len(taken)
    return len(_matched(sorted(finding, key=len)))


def _matched(matches: Matches) -> dict[int, int]:
    """Return gold object -> its answer, by augmenting paths from all free answers at once (Hopcroft and Karp 1973)."""
    owner: dict[int, int] = {}
    mate: dict[int, int] = {}
    grows = True
    while grows:
        queue = [answer for answer in range(len(matches)) if answer not in mate]
        root, parent, grown = {answer: answer for answer in queue}, dict[int, int](), set[int]()
        for answer in queue:  # breadth first; the queue grows in the loop
            for gold in matches[answer] if root[answer] not in grown else ():
                if gold in parent:
                    continue
                parent[gold] = answer
                if gold not in owner:
                    grown.add(root[answer])
                    _augment(gold, parent, owner, mate)
                    break
                root[owner[gold]] = root[answer]
                queue.append(owner[gold])
        grows = bool(grown)
    return owner


def _augment(gold: int | None, parent: Mapping[int, int], owner: dict[int, int], mate: dict[int, int]) -> None:
    """Follow an augmenting path back from a free gold object, and reassign the gold objects along it."""
    while gold is not None:
        answer = owner[gold] = parent[gold]
        mate[answer], gold = gold, mate.get(answer)


Counts = tuple[int, int, int]
"""Counts of a query: hits, predicted objects, gold objects. P, R and F1 of all editions follow from them."""


class Scorer(Protocol):
    """Comparison of a query's answers with the gold, by the rules of an edition."""

    def key(self, text: str) -> str:
        """Return the normal form by which answers are compared with each other."""
        ...

    def matches(self, value: str, gold: Sequence[Any], relation: str) -> tuple[int, ...]:
        """Return the indices of the gold objects that an answer matches."""
        ...

    def count(self, matches: Sequence[tuple[int, ...]]) -> int:
        """Return the number of hits of distinct answers.

        matches: indices of the gold objects that each answer matches.
        """
        ...

    def score(self, predicted: Any, gold: Any, relation: str) -> Counts:
        """Return the counts of one row's raw column values."""
        ...


_EMPTY = "."
"""Key of values that are empty before normalisation; it differs from all normal forms, which hold no punctuation."""


_NOTHING = frozenset({_EMPTY, "", "none", "null"})


@lru_cache(maxsize=1 << 16)
def number(text: Any) -> float | None:
    """Return the number in a text, as the scorers read it (commas between thousands allowed); None if it is none."""
    try:
        return float(text.replace(",", "").strip())
    except (ValueError, AttributeError):
        return None


def _near(tolerance: float, value: float | None, gold: float | None) -> bool:
    """Return whether a number is within a relative tolerance of the gold.

    A negative gold matches as in the official scripts, which divide by the gold with its sign.
    """
    return value is not None and gold is not None and gold != 0 and abs(value - gold) / gold <= tolerance


_PLAIN = Memo(plain_key)


_CLEANED = Memo(lambda text: plain_key(text) if text else _EMPTY)


_FOLDED = Memo(folded_key)


@dataclass(frozen=True, slots=True)
class AliasScorer:
    """Scorer of 2022: a gold object is found if any of its aliases is predicted, so one string may find several.

    Both sides are normalised with `plain_key`; predictions form a set. Without predictions, precision is 1. A single
    "", "none" or "null" counts as no prediction. An empty gold has recall 1, and precision 1 only without predictions.
    A value that is empty before normalisation ("" or JSON's null) differs from one that is empty after it ("...").
    """

    def key(self, text: str) -> str:
        """Return the normal form of an answer."""
        return _PLAIN[text]

    def matches(self, value: str, gold: Sequence[Sequence[str]], relation: str) -> tuple[int, ...]:
        """Return the indices of the gold objects that an answer matches."""
        key = _PLAIN[value]
        return tuple(i for i, names in enumerate(gold) if key in map(_PLAIN.__getitem__, names))

    def count(self, matches: Sequence[tuple[int, ...]]) -> int:
        """Return the number of gold objects found."""
        return len({index for indices in matches for index in indices})

    def score(self, predicted: Any, gold: Any, relation: str) -> Counts:
        """Return the counts of one row. predicted: list of strings. gold: list of alias lists."""
        try:
            keys = set(map(_CLEANED.__getitem__, predicted))
        except TypeError:  # an unhashable value; only an empty one has a key
            keys = {_CLEANED[value or ""] for value in predicted}
        hits = sum(not keys.isdisjoint(map(_CLEANED.__getitem__, names)) for names in gold)
        return hits, 0 if len(keys) <= 1 and keys <= _NOTHING else len(keys), len(gold)


@dataclass(frozen=True, slots=True)
class IdScorer:
    """Scorer of 2023 and 2024: exact QIDs or literals. In 2023 repeated predictions count, so recall can exceed 1.

    distinct: whether to compare sets (2024); else the lists as written (2023).
    none_is_object: whether "" is an ordinary object that only "" matches (the 2023 script before its correction).

    An empty list has precision 1. In 2023 a gold of [""] means "no object". Recall is then 1 for any prediction, and a
    predicted "" is correct.
    """

    distinct: bool
    none_is_object: bool = False

    def key(self, text: str) -> str:
        """Return the id itself."""
        return text

    def matches(self, value: str, gold: Sequence[str], relation: str) -> tuple[int, ...]:
        """Return the indices of the gold objects that an answer matches."""
        return tuple(i for i, other in enumerate(gold) if other == value)[:1]

    def count(self, matches: Sequence[tuple[int, ...]]) -> int:
        """Return the number of answers with a match."""
        return sum(1 for indices in matches if indices)

    def score(self, predicted: Any, gold: Any, relation: str) -> Counts:
        """Return the counts of one row of two lists of ids. In 2023 a value that is no list scores 0, as officially."""
        if self.distinct:
            predicted, gold = set(predicted), set(gold)
            return len(predicted & gold), len(predicted), len(gold)
        wanted = 0 if gold == [""] and not self.none_is_object else len(gold)
        try:
            return sum(value in gold for value in predicted), len(predicted), wanted
        except TypeError:
            return 0, 1, wanted


@dataclass(frozen=True, slots=True)
class ValueScorer:
    """Scorer of 2025: exact strings after stripping; numbers within a tolerance of any gold number.

    Every prediction with a match is a hit, so several numbers near one gold number make recall exceed 1.
    """

    numeric: frozenset[str]
    tolerance: float = 0.05

    def key(self, text: str) -> str:
        """Return the normal form of an answer."""
        return text.strip()

    def matches(self, value: str, gold: Sequence[str], relation: str) -> tuple[int, ...]:
        """Return the indices of the gold objects that an answer matches."""
        if relation not in self.numeric:
            return tuple(i for i, other in enumerate(gold) if other == value.strip())[:1]
        return tuple(i for i, other in enumerate(gold) if _near(self.tolerance, number(value), number(other)))[:1]

    def count(self, matches: Sequence[tuple[int, ...]]) -> int:
        """Return the number of answers with a match."""
        return sum(1 for indices in matches if indices)

    def score(self, predicted: Any, gold: Any, relation: str) -> Counts:
        """Return the counts of one row of two lists of strings, each read as a set."""
        predicted, gold = set(predicted), set(gold)
        if relation in self.numeric:
            numbers = [number(other) for other in gold]
            hits = sum(1 for v in predicted if any(_near(self.tolerance, number(v), other) for other in numbers))
        else:
            hits = sum(1 for value in predicted if value.strip() in gold)
        return hits, len(predicted), len(gold)


@dataclass(frozen=True, slots=True)
class _OneToOne:
    """Scorer that matches each answer with at most one gold object, and folds texts."""

    def key(self, text: str) -> str:
        """Return the normal form of an answer."""
        return _FOLDED[text]

    def count(self, matches: Sequence[tuple[int, ...]]) -> int:
        """Return the size of a maximum matching."""
        return most_pairs(matches)


@dataclass(frozen=True, slots=True)
class MatchingScorer(_OneToOne):
    """Scorer of 2026: alias lists, and each prediction matches at most one gold object (maximum bipartite matching).

    Predictions are distinct under `folded_key`. A nested list stands for its first element. Numbers are compared with
    the first alias within a tolerance, and each gold number is found once.
    """

    numeric: frozenset[str]
    tolerance: float = 0.05

    def matches(self, value: str, gold: Sequence[Sequence[str]], relation: str) -> tuple[int, ...]:
        """Return the indices of the gold objects that an answer could match."""
        if relation in self.numeric:
            given = number(value)
            return tuple(i for i, names in enumerate(gold) if names and _near(self.tolerance, given, number(names[0])))
        key = _FOLDED[value]
        return tuple(i for i, names in enumerate(gold) if key in map(_FOLDED.__getitem__, names))

    def score(self, predicted: Any, gold: Any, relation: str) -> Counts:
        """Return the counts of one row. predicted: list of strings or lists. gold: list of alias lists or strings."""
        if gold and isinstance(gold[0], str):
            gold = [[name] for name in gold]
        if relation in self.numeric:
            answers = _distinct_texts(predicted, self.key)
            hits = self._numeric_hits(answers.values(), [number(names[0]) if names else None for names in gold])
            return hits, len(answers), len(gold)
        try:
            keys = frozenset(map(_FOLDED.__getitem__, predicted))
        except (TypeError, AttributeError):  # a nested list, or no string at all
            keys = frozenset(_distinct_texts(predicted, self.key))
        return self._string_hits(keys, gold), len(keys), len(gold)

    def _string_hits(self, keys: frozenset[str], gold: Sequence[Sequence[str]]) -> int:
        finders = (keys.intersection(map(_FOLDED.__getitem__, names)) for names in gold)
        finding_any = list(filter(None, finders))
        if len(finding_any) < 2 or sum(map(len, finding_any)) == len(frozenset().union(*finding_any)) == len(
            finding_any
        ):
            return len(finding_any)
        found = defaultdict[str, list[int]](list)
        for i, finding in enumerate(finding_any):
            for key in finding:
                found[key].append(i)
        return self.count([*map(tuple, found.values())])

    def _numeric_hits(self, answers: Iterable[str], gold: Sequence[float | None]) -> int:
        free = set(range(len(gold)))
        for value in map(number, answers):
            near = next((i for i in sorted(free) if _near(self.tolerance, value, gold[i])), None)
            free.discard(-1 if near is None else near)
        return len(gold) - len(free)


Key = TypeVar("Key", bound=Hashable)


def _distinct_texts(predicted: Iterable[Any], key: Callable[[str], Key]) -> dict[Key, str]:
    """Return key -> first text, for a list whose entries may be nested once; other values are dropped."""
    texts: dict[Key, str] = {}
    for value in predicted:
        text = value[0] if isinstance(value, list) and value else value
        if isinstance(text, str):
            texts.setdefault(key(text), text)
    return texts


Coarser = Literal["wrong", "right"]
"""How an answer counts that is less precise than gold but does not contradict it, as 1985 for 12 October 1985."""


@dataclass(frozen=True, slots=True)
class KindScorer(_OneToOne):
    """Scorer by kinds: each answer matches at most one gold object, and gold lists aliases or single texts.

    The kind of a relation's objects says what an answer means, and when it is right; without a relation, texts are
    compared folded.

    relations: relations by their names in rows; `Edition.knowing` sets them. tolerance: relative tolerance that rules
    for numbers assume when they are tuned.
    """

    coarser: Coarser = "wrong"
    tolerance: float = 0.05
    relations: Mapping[str, Relation] = field(default_factory=dict)

    def matches(self, value: str, gold: Sequence[Any], relation: str) -> tuple[int, ...]:
        """Return the indices of the gold objects that an answer could match."""
        lists = [[names] if isinstance(names, str) else names for names in gold]
        return tuple(i for i, names in enumerate(lists) if any(self._is_equal(value, name, relation) for name in names))

    def score(self, predicted: Any, gold: Any, relation: str) -> Counts:
        """Return the counts of one row. Answers of one meaning count once."""

        def compared(text: str) -> Hashable:
            value = self._meaning(text, relation)
            return text.strip() if value is None else value

        answers = _distinct_texts(predicted, compared).values()
        return self.count([self.matches(text, gold, relation) for text in answers]), len(answers), len(gold)

    def _meaning(self, text: str, name: str) -> Hashable:
        relation = self.relations.get(name)
        return kind_of(relation).meaning(text, relation) if relation else _FOLDED[text]

    def _is_equal(self, text: str, true_text: str, name: str) -> bool:
        given, true = self._meaning(text, name), self._meaning(true_text, name)
        if (relation := self.relations.get(name)) is None:
            return given == true
        return kind_of(relation).is_same(given, true, relation, coarser=self.coarser == "right")
