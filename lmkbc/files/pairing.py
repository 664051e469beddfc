"""Pairs of names and ids in published rows whose two lists differ in length.

The lists are parallel, but names with commas were split at them ("Earl Wilbur Sutherland", "Jr."), and some names were
lost. A name and an id are paired only if all best alignments of the two lists agree.
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
"""Usual form of a part after a comma. No whole name has this form."""


MOST_WAYS = 2_000_000
"""Most alignments to try, a few seconds' work. Published rows need far fewer (642 ids with 15 commas: 164,000)."""


class IdPieces(NamedTuple):
    """The pieces of an id, from `start` to `end` (excluded); there may be none."""

    start: int
    end: int


Paths = list[dict[int, int]]
"""For each number of ids: number of pieces that they use -> best score."""


class KnownPairs:
    """Names and ids that are confirmed by rows with equally many of both."""

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        self._ids: defaultdict[str, set[str]] = defaultdict(set)
        self._names: defaultdict[str, set[str]] = defaultdict(set)
        for name, identifier in pairs:
            self.add(name, identifier)

    def add(self, name: str, identifier: str) -> bool:
        """Store a pair, and return whether it is new."""
        news = identifier not in self._ids[name]
        self._ids[name].add(identifier)
        self._names[identifier].add(name)
        return news

    def fit(self, name: str, identifier: str) -> int:
        """Return how well a name fits an id: above 0 if other rows pair them, below 0 if they contradict."""
        if name == identifier or identifier in self._ids.get(name, ()):
            return 8
        return -4 if identifier in self._names else 0


class _Row:
    """The name pieces of one row, with scores of how runs of them fit its ids."""

    def __init__(self, pieces: Sequence[str], ids: Sequence[str], known: KnownPairs) -> None:
        self.pieces, self.ids, self._known = pieces, ids, known
        self._tails = [_TAIL.fullmatch(piece) is not None for piece in pieces]
        self._before = [0, *accumulate(self._tails)]

    def steps(self, place: int) -> Iterator[tuple[IdPieces, int]]:
        """Yield the possible pieces of the id at a place, with their score.

        Enough pieces are left for the other ids.
        """
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

    A name and an id that cannot be paired become an object each.
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
    """Return an object. Some published rows have an id in place of an unknown name; such a name is left out."""
    if identifier is not None and _QID.fullmatch(identifier):
        names = tuple(name for name in names if name != identifier)
    return GoldObject(names, identifier, parts if names else ())


def _certain(row: _Row) -> list[IdPieces | None]:
    """Return for each id its pieces in all best alignments; None if these differ, or if there are too many to try."""
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
