"""Growth of a knowledge base: entities in facts become subjects in turn, until a limit is reached.

It grows breadth first, level by level, or in rounds of the queries with the highest value (see `frontier`).

Two mentions are the same entity by QID, else by folded name. A name without a link means any entity with this name. So
linked mentions are processed first, and an unlinked mention makes no duplicate. An entity becomes a subject if a
relation is asked about its class; others stay leaves.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from lmkbc.kb.build.engine import REACHED, Ask
from lmkbc.kb.build.entities import WEIGHT
from lmkbc.kb.build.facts import Tables
from lmkbc.kb.build.frontier import Frontier, Waiting
from lmkbc.kb.build.manifest import Shard
from lmkbc.kb.build.staged import Directory
from lmkbc.kb.build.subjects import SCHEMA, Classes, Subject, Subjects
from lmkbc.names import folded_key
from lmkbc.relation import Relation

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

    frontier: queue for growth by value; None for breadth first.
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
        self._named = [name for name, relation in relations.items() if relation.kind == "entity"]
        self._frontier = frontier
        self._levels: list[dict[str, Any]] = []
        self._rows = 0
        self.stopped = ""

    def __len__(self) -> int:
        """Return how many levels are done."""
        return len(self._levels)

    @property
    def subjects(self) -> int:
        """Return how many subjects were asked about; 0 without growth."""
        return self._rows

    def next(
        self, subjects: Iterable[Subject], shards: Sequence[Shard], directory: Directory
    ) -> Subjects | list[Ask] | None:
        """Return the subjects of the next level, or the queries of the next round; None if growth ends.

        subjects: subjects of the level that was asked. shards: its written shards.
        """
        if not self._bounds.depth:
            return None
        before = self._rows
        self._count(subjects)
        found = [*self._found(shards, directory)]
        new = [one for one, *_ in found if self._entities.add(one.name, one.id)]
        self._note(shards, self._rows - before, new)
        asked = [
            one
            for one in found
            if self._classes.relations(one.subject.class_) and self._subjects.add(one.subject.name, one.subject.id)
        ]
        left = None if self._bounds.budget is None else max(self._bounds.budget - self._rows, 0)
        by_value = self._frontier
        some, why = self._of_level(asked, left) if by_value is None else self._of_round(by_value, asked, left)
        self.stopped = self._end(why, _failure(shards, directory))
        return None if self.stopped else some

    def _count(self, subjects: Iterable[Subject]) -> None:
        """Count the subjects of a level, or of a round, whose subjects were added when they were found."""
        if self._frontier is not None and self._levels:
            self._rows = len(self._frontier)
            return
        for one in subjects:
            self._rows += 1
            self._subjects.add(one.name, one.id)
            self._entities.add(one.name, one.id)
        if self._frontier is not None:
            self._frontier.begin(self._rows)

    def _of_level(self, asked: Sequence[Waiting], left: int | None) -> tuple[Subjects, str]:
        """Return the subjects of a level, at most `left`, and why there are none."""
        rows = [one.subject[1:] for one in asked[:left]]
        why = "closed" if not asked else "depth" if len(self) > self._bounds.depth else "budget" if left == 0 else ""
        return Subjects(pl.DataFrame(rows, schema=SCHEMA, orient="row"), self._rows), why

    def _of_round(self, frontier: Frontier, asked: Sequence[Waiting], left: int | None) -> tuple[list[Ask], str]:
        """Return the best waiting queries with at most `left` new subjects, and why there are none."""
        for one in asked:
            frontier.add(one)
        asks = frontier.round(left)
        return asks, "" if asks else "budget" if left == 0 else frontier.ended

    def _end(self, why: str, failure: str) -> str:
        """Return why growth ends; "" if it continues."""
        level = self._levels[-1]
        is_stale = level["new"] < self._bounds.novelty * level["mentions"]
        return failure or why or ("novelty" if is_stale else "")

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
        linked = [one.id for one in new if one.id]
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
    """Return why queries of some shards are missing; "" if none is."""
    reasons = {why for one in shards if one.failed for why in directory.tables(one.number).missing["reason"]}
    return "failed queries" if reasons - {*REACHED.values()} else min(reasons, default="")


def _merged(mentions: pl.DataFrame) -> pl.DataFrame:
    """Return each entity of a relation once, with the depth of its most confident fact and the sum of its weights."""
    ordered = mentions.sort("sure", descending=True, maintain_order=True)
    firsts = pl.col("depth", "sure").first()
    return ordered.group_by(COLUMNS, maintain_order=True).agg(firsts, pl.col("weight").sum())


def _folded(name: str) -> bytes:
    return hashlib.blake2b((folded_key(name) or name).encode(), digest_size=12).digest()


class _Met:
    """Set of entities seen so far."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._names: set[bytes] = set()

    def add(self, name: str, qid: str | None) -> bool:
        """Add an entity, and return whether it is new."""
        folded = _folded(name)
        if qid is not None:
            is_new = qid not in self._ids
            self._ids.add(qid)
        else:
            is_new = folded not in self._names
        self._names.add(folded)
        return is_new
