"""Pairs of names and ids in published rows whose two lists differ in length.

The lists run in parallel, but names that hold commas were split at them ("Earl Wilbur Sutherland", "Jr."), and some
names were lost. A name and an id are paired only where all best ways to lay one list along the other agree on it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from lmkbc.types import GoldObject

_QID = re.compile(r"Q\d+")
_TAIL = re.compile(
    r"(?:jr|sr|i{2,3}|iv|esq|inc|ltd|ll[cp]|d\.c|ph\.?d|m\.?d)\.?|(?:and|or) .*|\d+(?:st|nd|rd|th) .*", re.I
)
"""Usual form of the rest of a name behind a comma. No name by itself has this form."""


MOST_WAYS = 2_000_000
"""Far more than published rows need (642 ids with 15 commas: 164,000); a few seconds' work."""


class IdPieces(NamedTuple):
    """Id and its pieces, from `start` to `end`, which may be none."""

    start: int
    end: int


Paths = list[dict[int, int]]
"""For each number of ids, the best score of every number of pieces that they may have taken."""


class KnownPairs:
    """Names and ids that rows with as many of the one as of the other confirm."""

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        self._ids: defaultdict[str, set[str]] = defaultdict(set)
        self._names: defaultdict[str, set[str]] = defaultdict(set)
        for name, identifier in pairs:
            self.add(name, identifier)

    def add(self, name: str, identifier: str) -> bool:
        """Take note that a name belongs to an id; whether that is news."""
        news = identifier not in self._ids[name]
        self._ids[name].add(identifier)
        self._names[identifier].add(name)
        return news

    def fit(self, name: str, identifier: str) -> int:
        """Return how well a name suits an id: above 0 where other rows pair them, below 0 where they contradict."""
        if name == identifier or identifier in self._ids.get(name, ()):
            return 8
        return -4 if identifier in self._names else 0


class _Row:
    """The pieces of names of one row, and how well runs of them suit its ids."""

    def __init__(self, pieces: Sequence[str], ids: Sequence[str], known: KnownPairs) -> None:
        self.pieces, self.ids, self._known = pieces, ids, known
        self._tails = [_TAIL.fullmatch(piece) is not None for piece in pieces]
        self._before = [0, *accumulate(self._tails)]

    def steps(self, place: int) -> Iterator[tuple[IdPieces, int]]:
        """Yield what the id at a place may take so that enough is left for the others, and how well it suits."""
        n, after = len(self.pieces), len(self.ids) - place - 1
        few, most = (1, n - len(self.ids) + 1) if n > len(self.ids) else (0, 1)
        for start in range(few * place, min(most * place, n) + 1):
            for end in range(max(start + few, n - most * after), min(start + most, n - few * after) + 1):
                yield IdPieces(start, end), self._fit(start, end, self.ids[place]) if end > start else 0

    def _fit(self, start: int, end: int, identifier: str) -> int:
        behind = self._before[end] - self._before[start + 1]
        fit = self._known.fit(", ".join(self.pieces[start:end]), identifier)
        return fit + 2 * behind - 2 * self._tails[start]


def objects_of(pieces: Sequence[str], ids: Sequence[str], known: KnownPairs) -> tuple[GoldObject, ...]:
    """Return the objects of a row of n pieces of names and m ids, n != m, in the row's order.

    A name and an id of which nobody can say that they belong together are an object each, without the other.
    """
    objects, end = list[GoldObject](), 0
    for step, identifier in zip(_certain(_Row(pieces, ids, known)), ids, strict=True):
        if step is not None and step.start < step.end:
            objects += [GoldObject((piece,)) for piece in pieces[end : step.start]]
            taken = tuple(pieces[step.start : step.end])
            objects.append(named((", ".join(taken),), identifier, taken if len(taken) > 1 else ()))
            end = step.end
        else:
            objects.append(GoldObject((), identifier))
    objects += [GoldObject((piece,)) for piece in pieces[end:]]
    return tuple(item for item in objects if item.id or any(item.names))


def named(names: tuple[str, ...], identifier: str | None, parts: tuple[str, ...] = ()) -> GoldObject:
    """Return an object, without the id that some published rows write where they know no name."""
    if identifier is not None and _QID.fullmatch(identifier):
        names = tuple(name for name in names if name != identifier)
    return GoldObject(names, identifier, parts if names else ())


def _certain(row: _Row) -> list[IdPieces | None]:
    """For each id the pieces that all best ways give it; None where they differ, or where too many would differ."""
    if len(row.ids) * (abs(len(row.pieces) - len(row.ids)) + 1) ** 2 > MOST_WAYS and len(row.ids) > 1:
        return [None] * len(row.ids)
    steps = [dict(row.steps(place)) for place in range(len(row.ids))]
    ahead = _best(steps, 0)
    back = _best(
        [{IdPieces(end, start): fit for (start, end), fit in ways.items()} for ways in steps[::-1]], len(row.pieces)
    )
    certain: list[IdPieces | None] = []
    for ways, before, after in zip(steps, ahead, back[-2::-1], strict=False):
        scores = {step: before[step.start] + fit + after[step.end] for step, fit in ways.items()}
        best = max(scores.values())
        agreed = [step for step, score in scores.items() if score == best]
        certain.append(agreed[0] if len(agreed) == 1 else None)
    return certain


def _best(steps: Sequence[dict[IdPieces, int]], first: int) -> Paths:
    paths: Paths = [{first: 0}]
    for ways in steps:
        reached: dict[int, int] = {}
        for (start, end), fit in ways.items():
            score = paths[-1][start] + fit
            reached[end] = max(score, reached.get(end, score))
        paths.append(reached)
    return paths
