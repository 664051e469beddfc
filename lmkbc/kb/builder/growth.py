"""Growth of a knowledge base: entities in facts become subjects in turn, until a limit is reached.

It grows breadth first, level by level, or in rounds of the queries with the highest value: the right facts that a token
is expected to give.

Two mentions are the same entity by QID, else by folded name. A name without a link means any entity with this name. So
linked mentions are processed first, and an unlinked mention makes no duplicate. An entity becomes a subject if a
relation is asked about its class; others stay leaves.

Value: a fact counts as right with its confidence. The gain of a query is the mean sum of confidences so far, for its
relation and the depth of its subject. Its cost is the mean number of tokens of its relation. A mean of few queries is
shrunk to a broader one: of the depth above, of the relation, of all.

An invented subject gives no right facts. So if the fact that names a subject is wrong, the subject is assumed to exist
with probability one half. In GPTKB, three in four entities could be verified, and one in three facts (Hu et al., 2025).
All sums are of whole numbers, so the order of blocks does not change them.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl

from lmkbc.kb.base.manifest import Shard
from lmkbc.kb.builder.base_directory import Directory
from lmkbc.kb.builder.facts import REACHED, Ask, Tables, is_unread
from lmkbc.kb.builder.settle import WEIGHT
from lmkbc.kb.builder.subjects import SCHEMA, Classes, Subject, Subjects
from lmkbc.names import name_key
from lmkbc.relation import Relation
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
    confidence of a relation's newest facts; below it, the relation is not asked any more.
    """

    def __init__(
        self,
        classes: Classes,
        names: Mapping[str, str],
        deepest: int,
        precision: float = LEAST_MEAN,
    ) -> None:
        self._classes, self._names, self._deepest = classes, names, deepest
        self._precision = precision
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
        query = ("subject_row", "relation")
        answered = pl.concat([tables.facts.select(query), tables.nothing.select(query)]).unique()
        for relation, depth, count in self.placed(answered).group_by("relation", "depth").len().iter_rows():
            self._queries.update(dict.fromkeys(_cells(relation, depth), count))
        right = (pl.col("confidence") * WHOLE).round().cast(pl.Int64).sum()
        gains = self.placed(tables.facts).group_by("relation", "depth").agg(right, count=pl.len())
        for relation, depth, sum_, count in gains.iter_rows():
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
        size, last = max(ROUND, self._queries[()] // PORTION), None if most is None else len(self) + most
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


COLUMNS = ["relation", "object", "object_id"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits on growth. depth: levels beyond the given subjects. budget: subjects in all, the given ones included.

    novelty: growth ends when the share of new entities among a level's mentions falls below this.
    """

    depth: int = 0
    budget: int | None = None
    novelty: float = 0.0


class Growth:
    """The levels or rounds of a base. relations: relations by their names in facts.

    frontier: queue for growth by value; None for breadth first. subjects: number of subjects that were asked about; 0
    without growth.
    """

    def __init__(
        self,
        bounds: Bounds,
        classes: Classes,
        relations: Mapping[str, Relation],
        frontier: Frontier | None = None,
    ) -> None:
        self._bounds, self._classes, self._relations = bounds, classes, relations
        self._subjects, self._entities = _Met(), _Met()
        self._named = [name for name, relation in relations.items() if relation.has_entities()]
        self._frontier = frontier
        self._levels: list[dict[str, Any]] = []
        self.subjects = 0
        self.stopped = ""

    def __len__(self) -> int:
        """Return how many levels are done."""
        return len(self._levels)

    def next(
        self, subjects: Iterable[Subject], shards: Sequence[Shard], directory: Directory
    ) -> Subjects | list[Ask] | None:
        """Return the subjects of the next level, or the queries of the next round; None if growth ends.

        subjects: subjects of the level that was asked. shards: its written shards.
        """
        if not self._bounds.depth:
            return None
        before = self.subjects
        self._count(subjects)
        mentions = [*self._found(shards, directory)]
        new = [subject for subject, *_ in mentions if self._entities.add(subject.name, subject.id)]
        self._note(shards, self.subjects - before, new)
        asked = [
            mention
            for mention in mentions
            if self._classes.relations(mention.subject.class_)
            and self._subjects.add(mention.subject.name, mention.subject.id)
        ]
        left = None if self._bounds.budget is None else max(self._bounds.budget - self.subjects, 0)
        by_value = self._frontier
        some, why = self._of_level(asked, left) if by_value is None else self._of_round(by_value, asked, left)
        level = self._levels[-1]
        stale = "novelty" if level["new"] < self._bounds.novelty * level["mentions"] else ""
        self.stopped = _failure(shards, directory) or why or stale
        return None if self.stopped else some

    def _count(self, subjects: Iterable[Subject]) -> None:
        """Count the subjects of a level, or of a round, whose subjects were added when they were found."""
        if self._frontier is not None and self._levels:
            self.subjects = len(self._frontier)
            return
        for subject in subjects:
            self.subjects += 1
            self._subjects.add(subject.name, subject.id)
            self._entities.add(subject.name, subject.id)
        if self._frontier is not None:
            self._frontier.begin(self.subjects)

    def _of_level(self, asked: Sequence[Waiting], left: int | None) -> tuple[Subjects, str]:
        """Return the subjects of a level, at most `left`, and why there are none."""
        rows = [waiting.subject[1:] for waiting in asked[:left]]
        why = "closed" if not asked else "depth" if len(self) > self._bounds.depth else "budget" if left == 0 else ""
        return Subjects(pl.DataFrame(rows, schema=SCHEMA, orient="row"), self.subjects), why

    def _of_round(self, frontier: Frontier, asked: Sequence[Waiting], left: int | None) -> tuple[list[Ask], str]:
        """Return the best waiting queries with at most `left` new subjects, and why there are none."""
        for waiting in asked:
            frontier.add(waiting)
        asks = frontier.round(left)
        return asks, "" if asks else "budget" if left == 0 else frontier.ended

    def _found(self, shards: Sequence[Shard], directory: Directory) -> Iterator[Waiting]:
        """Yield the entities in facts, linked first, by their most confident fact, of the class with most votes."""
        frames = [self._mentions(shard, directory.tables(shard.number)) for shard in shards]
        order = pl.col("relation").replace_strict({name: at for at, name in enumerate(self._relations)})
        named = _merged(pl.concat(frames)).sort(
            pl.col("object_id").is_null(), -pl.col("sure"), order, maintain_order=True
        )
        rows = [*named.iter_rows()]
        ids = {_folded(name): qid for _, name, qid, *_ in reversed(rows) if qid}
        keys = [qid or ids.get(_folded(name), _folded(name)) for _, name, qid, *_ in rows]
        votes = defaultdict[str | bytes, Counter[str]](Counter)
        for key, (relation, *_, weight) in zip(keys, rows, strict=True):
            votes[key][self._relations[relation].object_type.qid] += weight
        for key, (_, name, qid, depth, sure, _) in zip(keys, rows, strict=True):
            yield Waiting(Subject(0, name, qid, self._classes.voted(votes[key])), depth, sure)

    def _mentions(self, shard: Shard, tables: Tables) -> pl.DataFrame:
        """Return the entities in a shard's facts. If a frontier orders queries, it learns from the shard."""
        facts = tables.facts.filter(pl.col("relation").is_in(self._named))
        if self._frontier is None:
            placed = facts.with_columns(depth=len(self._levels), sure=1.0)
        else:
            self._frontier.learn(shard, tables)
            placed = self._frontier.placed(facts).with_columns(sure="confidence")
        return _merged(placed.with_columns(pl.col("depth") + 1, weight=WEIGHT))

    def _note(self, shards: Sequence[Shard], subjects: int, new: Sequence[Subject]) -> None:
        linked = [entity.id for entity in new if entity.id]
        level = {
            "subjects": subjects,
            "queries": sum(shard.queries for shard in shards),
            "facts": sum(sum(shard.facts.values()) for shard in shards),
            "mentions": sum(shard.facts.get(name, 0) for shard in shards for name in self._named),
            "new": len(new),
            "new_linked": len(linked),
        }
        self._levels.append({"depth" if self._frontier is None else "round": len(self._levels), **level})

    def summary(self) -> dict[str, Any]:
        """Return the graph so far for the manifest; {} without growth.

        levels: for each level or round, the numbers of subjects, queries, facts and mentions of entities. Among the
        mentions, it counts those that are new, and new and linked. stopped: why there is no
        further level. by_depth: number of subjects. closed: relations that are no longer asked.
        """
        if not self._levels:
            return {}
        entities = sum(level["new"] for level in self._levels) + self._levels[0]["subjects"]
        graph = {"stopped": self.stopped, "entities": entities, "levels": self._levels}
        if self._frontier is not None:
            graph |= self._frontier.summary()
        return {"graph": graph}


def _failure(shards: Sequence[Shard], directory: Directory) -> str:
    """Return why queries of some shards are missing, "" if none is; those whose replies cannot be read do not count."""
    every = (why for shard in shards if shard.failed for why in directory.tables(shard.number).missing["reason"])
    reasons = {why for why in every if not is_unread(why)}
    return "failed queries" if reasons - {*REACHED.values()} else min(reasons, default="")


def _merged(mentions: pl.DataFrame) -> pl.DataFrame:
    """Return each entity of a relation once, with the depth of its most confident fact and the sum of its weights."""
    ordered = mentions.sort("sure", descending=True, maintain_order=True)
    firsts = pl.col("depth", "sure").first()
    return ordered.group_by(COLUMNS, maintain_order=True).agg(firsts, pl.col("weight").sum())


def _folded(name: str) -> bytes:
    return hashlib.blake2b(name_key(name).encode(), digest_size=12).digest()


class _Met:
    """Set of entities seen so far."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._names: set[bytes] = set()

    def add(self, name: str, qid: str | None) -> bool:
        """Add an entity, and return whether it is new."""
        folded = _folded(name)
        is_new = folded not in self._names if qid is None else qid not in self._ids
        self._names.add(folded)
        self._ids |= set() if qid is None else {qid}
        return is_new
