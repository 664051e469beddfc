"""Queue of queries that orders them by value: the right facts that a token is expected to give.

A fact counts as right with its confidence. The gain of a query is the mean sum of confidences so far, for its relation
and the depth of its subject. Its cost is the mean number of tokens of its relation. A mean of few queries is shrunk to
a broader one: of the depth above, of the relation, of all.

An invented subject gives no right facts. So if the fact that names a subject is wrong, the subject is assumed to exist
with probability one half. In GPTKB, three in four entities could be verified, and one in three facts (Hu et al., 2025).
All sums are of whole numbers, so the order of blocks does not change them.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import polars as pl

from lmkbc.kb.build.engine import Ask
from lmkbc.kb.build.facts import Tables
from lmkbc.kb.build.manifest import Shard
from lmkbc.kb.build.subjects import Classes, Subject
from lmkbc.types import Query

ROUND, PORTION = 256, 4
"""Least number of queries of a round; a quarter of all earlier queries if that is more, so that rounds stay few."""
PRIOR = 10
"""Queries as which a broader mean counts."""
ENOUGH = 20
"""Newest facts of a relation after which a low mean confidence ends it."""
LEAST_MEAN = 0.5
"""Least mean confidence, if no other is given. By default, an export leaves out facts below it."""
WHOLE = 1_000_000
"""Confidence 1 in sums: facts have confidences of six decimals."""
Cell = tuple[str | int, ...]
"""Key of queries that are counted together: all, those of a relation, or of a relation and a depth."""


class Waiting(NamedTuple):
    """Subject whose queries wait. depth: steps from the given subjects. sure: confidence of the fact that named it."""

    subject: Subject
    depth: int
    sure: float


class Frontier:
    """Waiting queries by relation and depth, with the gain and cost of earlier ones.

    names: relation in queries -> relation in facts. deepest: largest depth of a subject. precision: least mean
    confidence of a relation's newest facts; below it, the relation is not asked any more. size: least number of queries
    of a round.
    """

    def __init__(
        self,
        classes: Classes,
        names: Mapping[str, str],
        deepest: int,
        precision: float = LEAST_MEAN,
        size: int = ROUND,
    ) -> None:
        self._classes, self._names, self._deepest = classes, names, deepest
        self._precision, self._size = precision, size
        self._waiting = list[Waiting]()
        self._row_of = dict[int, int]()  # place in `_waiting` -> row, for subjects with at least one query asked
        self._depths = list[int]()  # of each row
        self._heaps: dict[tuple[str, int], list[tuple[float, int]]] = {}
        self._queries, self._right = Counter[Cell](), Counter[Cell]()
        self._tokens, self._newest, self._sums = Counter[str](), Counter[str](), Counter[str]()
        self._closed, self._cut = set[str](), False

    def begin(self, subjects: int) -> None:
        """Set the number of given subjects. All their queries are asked first."""
        self._depths = [0] * subjects

    def __len__(self) -> int:
        """Return the number of subjects with at least one query asked."""
        return len(self._depths)

    def placed(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return rows of a table with the depth of each subject."""
        return rows.with_columns(depth=pl.Series(self._depths, dtype=pl.Int64).gather(rows["subject_row"]))

    def learn(self, shard: Shard, tables: Tables) -> None:
        """Add the gain and cost of a shard's queries."""
        own = ("subject_row", "relation")
        answered = pl.concat([tables.facts.select(own), tables.nothing.select(own)]).unique()
        for relation, depth, count in self.placed(answered).group_by("relation", "depth").len().iter_rows():
            self._queries.update(dict.fromkeys(_cells(relation, depth), count))
        right = (pl.col("confidence") * WHOLE).round().cast(pl.Int64).sum()
        found = self.placed(tables.facts).group_by("relation", "depth").agg(right, count=pl.len())
        for relation, depth, sum_, count in found.iter_rows():
            self._right.update(dict.fromkeys(_cells(relation, depth), sum_))
            self._newest[relation] += count
            self._sums[relation] += sum_
        self._tokens.update(shard.tokens)

    def add(self, waiting: Waiting) -> None:
        """Add the queries of a subject, unless it is too deep."""
        if waiting.depth > self._deepest:
            self._cut = True
            return
        for name in self._classes.relations(waiting.subject.class_):
            heap = self._heaps.setdefault((name, waiting.depth), [])
            heapq.heappush(heap, (-(1 + waiting.sure) / 2, len(self._waiting)))
        self._waiting.append(waiting)

    def round(self, most: int | None) -> list[Ask]:
        """Return the queries of highest value in the order of rows, with at most `most` new subjects."""
        self._close()
        values = {place: self._value(*place) for place in self._heaps}
        best = [(values[place] * heap[0][0], heap[0][1], place) for place, heap in self._heaps.items()]
        heapq.heapify(best)
        size, last = max(self._size, self._queries[()] // PORTION), None if most is None else len(self) + most
        asks, order = list[tuple[int, int, Ask]](), {name: at for at, name in enumerate(self._names)}
        while best and len(asks) < size:
            *_, place = heapq.heappop(best)
            heap = self._heaps[place]
            _, at = heapq.heappop(heap)
            if at in self._row_of or last is None or len(self) < last:
                row, subject = self._row(at), self._waiting[at].subject
                asks.append((row, order[place[0]], Ask(row, Query(subject.name, place[0], subject.id))))
            if heap:
                heapq.heappush(best, (values[place] * heap[0][0], heap[0][1], place))
            else:
                del self._heaps[place]
        return [ask for *_, ask in sorted(asks)]

    def _row(self, at: int) -> int:
        """Return the row of a subject. It gets one with its first query."""
        if at not in self._row_of:
            self._row_of[at] = len(self)
            self._depths.append(self._waiting[at].depth)
        return self._row_of[at]

    def _close(self) -> None:
        """Close relations whose newest facts have too low a mean confidence."""
        for name, count in self._newest.items():
            if count >= ENOUGH and self._sums[name] < self._precision * WHOLE * count:
                self._closed.add(name)
        self._newest.clear()
        self._sums.clear()
        self._heaps = {place: heap for place, heap in self._heaps.items() if self._names[place[0]] not in self._closed}

    def _value(self, name: str, depth: int) -> float:
        """Return the right facts that a token is expected to give, for a subject that certainly exists."""
        relation, mean, cost = self._names[name], 0.0, 1.0
        for cell in dict.fromkeys(cell for place in range(depth + 1) for cell in _cells(relation, place)):
            mean = (self._right[cell] + PRIOR * mean) / (self._queries[cell] + PRIOR)
        if self._tokens:
            cost = PRIOR * self._tokens.total() / max(self._queries[()], 1)
            cost = (self._tokens[relation] + cost) / (self._queries[relation,] + PRIOR)
        return mean / cost

    def summary(self) -> dict[str, Any]:
        """Return the number of subjects at each depth, and the closed relations."""
        counts = Counter(self._depths)
        return {"by_depth": [counts[depth] for depth in range(max(counts) + 1)], "closed": sorted(self._closed)}

    @property
    def ended(self) -> str:
        """Return why no query is left."""
        return "precision" if self._closed else "depth" if self._cut else "closed"


def _cells(relation: str, depth: int) -> tuple[Cell, ...]:
    """Return the cells that count a query, the broadest first."""
    return (), (relation,), (relation, depth)
