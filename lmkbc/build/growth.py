"""Growing a knowledge base: what its facts name is asked about in turn, breadth first, until a bound is met.

An entity is the same as another by its QID, else by its folded name, and a name without a link is any entity that has
it: linked ones are settled first, so that a mention without a link makes no double of one with. An entity becomes a
subject where some relation is asked of things of its kind; the others stay leaves.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from lmkbc.build.classes import Classes
from lmkbc.build.directory import Directory
from lmkbc.build.entities import WEIGHT
from lmkbc.build.manifest import Shard
from lmkbc.build.subjects import SCHEMA, Subject, Subjects
from lmkbc.link.index import AliasIndex
from lmkbc.names import folded_key
from lmkbc.relation import Relation

COLUMNS = ["relation", "object", "object_id"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits on a base's growth. depth: levels beyond the given subjects. budget: subjects in all, the given included.

    novelty: it ends once a smaller share of a level's mentions of entities are of new ones.
    """

    depth: int = 0
    budget: int | None = None
    novelty: float = 0.0


class Growth:
    """The levels of a base. relations: by the names that facts have; index: confirms that linked entities exist."""

    def __init__(
        self,
        bounds: Bounds,
        classes: Classes,
        relations: Mapping[str, Relation],
        index: AliasIndex | None = None,
    ) -> None:
        self._bounds, self._classes, self._relations, self._index = bounds, classes, relations, index
        self._subjects, self._entities = _Met(), _Met()
        self._named = [name for name, relation in relations.items() if relation.kind == "entity"]
        self._levels: list[dict[str, Any]] = []
        self._rows = 0
        self.stopped = ""

    def __len__(self) -> int:
        """Return how many levels are done."""
        return len(self._levels)

    def next(self, subjects: Iterable[Subject], shards: Sequence[Shard], directory: Directory) -> Subjects | None:
        """Return the subjects of the next level, None where the base grows no more.

        subjects: of the level that was asked; shards: what was written of it.
        """
        if not self._bounds.depth:
            return None
        before = self._rows
        for one in subjects:
            self._rows += 1
            self._subjects.add(one.name, one.id)
            self._entities.add(one.name, one.id)
        found = [*self._found(shards, directory)]
        self._note(shards, self._rows - before, [one for one in found if self._entities.add(one.name, one.id)])
        asked = [one for one in found if self._classes.relations(one.class_) and self._subjects.add(one.name, one.id)]
        left = None if self._bounds.budget is None else max(self._bounds.budget - self._rows, 0)
        self.stopped = self._end(asked, left, any(shard.failed for shard in shards))
        if self.stopped:
            return None
        return Subjects(pl.DataFrame([one[1:] for one in asked[:left]], schema=SCHEMA, orient="row"), self._rows)

    def _end(self, asked: Sequence[Subject], left: int | None, failed: bool) -> str:
        """Return why there is no next level; "" where there is one."""
        level = self._levels[-1]
        ends = {
            "failed queries": failed,
            "closed": not asked,
            "depth": len(self._levels) > self._bounds.depth,
            "budget": left == 0,
            "novelty": level["new"] < self._bounds.novelty * level["mentions"],
        }
        return next((reason for reason, holds in ends.items() if holds), "")

    def _found(self, shards: Sequence[Shard], directory: Directory) -> Iterator[Subject]:
        """Yield the entities that facts name, those with a link before the others, and the class with most votes."""
        frames = [_weighed(directory.tables(shard.number).facts, WEIGHT) for shard in shards]
        order = pl.col("relation").replace_strict({name: at for at, name in enumerate(self._relations)})
        named = _weighed(pl.concat(frames).filter(pl.col("relation").is_in(self._named)), pl.col("weight"))
        rows = [*named.sort(pl.col("object_id").is_null(), order, maintain_order=True).iter_rows()]
        ids = {_folded(name): qid for _, name, qid, _ in reversed(rows) if qid}
        keys = [qid or ids.get(_folded(name), _folded(name)) for _, name, qid, _ in rows]
        votes = defaultdict[str | bytes, Counter[str]](Counter)
        for key, (relation, _, _, weight) in zip(keys, rows, strict=True):
            votes[key][self._relations[relation].object_type.qid] += weight
        for key, (_, name, qid, _) in zip(keys, rows, strict=True):
            yield Subject(0, name, qid, self._classes.voted(votes[key]))

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
        if self._index is not None:
            there = self._index.entities(linked)
            level["new_confirmed"] = sum(there.get(qid) is not None for qid in linked)
        self._levels.append({"depth": len(self._levels), **level})

    def summary(self) -> dict[str, Any]:
        """Return the graph so far, for the manifest; nothing where it was not to grow.

        Of each level: subjects, queries, facts, mentions of entities, and how many of these were met for the first
        time, linked, and confirmed by an index. stopped: why there is no further level.
        """
        if not self._levels:
            return {}
        entities = sum(level["new"] for level in self._levels) + self._levels[0]["subjects"]
        return {"graph": {"stopped": self.stopped, "entities": entities, "levels": self._levels}}


def _weighed(facts: pl.DataFrame, weight: pl.Expr) -> pl.DataFrame:
    """Return what facts name, each once, with the sum of its weights."""
    return facts.group_by(COLUMNS, maintain_order=True).agg(weight=weight.sum())


def _folded(name: str) -> bytes:
    return hashlib.blake2b((folded_key(name) or name).encode(), digest_size=12).digest()


class _Met:
    """Entities that were met."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._names: set[bytes] = set()

    def add(self, name: str, qid: str | None) -> bool:
        """Return whether an entity is met for the first time."""
        folded = _folded(name)
        if qid is not None:
            is_new = qid not in self._ids
            self._ids.add(qid)
        else:
            is_new = folded not in self._names
        self._names.add(folded)
        return is_new
