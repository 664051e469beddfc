"""Settlement of a base when all facts are there: duplicates, and facts that contradict a surer one, leave `facts`.

Facts compete for slots: one object per subject, one subject per object. The fact with the highest confidence wins. No
fact is lost: the table `removed` keeps it, the reason, and the fact that stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from lmkbc.kb.build.entities import NamedEntities
from lmkbc.kb.build.facts import FACTS, NOTHING, SETTLED, Tables
from lmkbc.relation import Relation

REASON = "removed"
"""Reason in `nothing` for a query whose facts were all removed."""
SAME, ONE_OBJECT, ONE_SUBJECT = "same fact", "one object", "one subject"
REMOVED: dict[str, Any] = {**FACTS, "place": pl.Int64, "reason": pl.String, "kept_row": pl.Int64, "kept": pl.String}
PLACE = pl.int_range(pl.len(), dtype=pl.Int64).over("relation").alias("place")
QUERY = ["subject_row", "relation"]
OBJECT = pl.coalesce(pl.col("object_entity").cast(pl.String), "literal", "object")


class Claim(NamedTuple):
    """A fact that may be removed. subject, key: keys of its subject and its object.

    linked: whether the object has a QID; a bare name may mean two things. place: index among the facts of its shard and
    relation.
    """

    relation: str
    subject: Any
    key: Any
    confidence: float
    linked: bool = True
    shard: int = 0
    place: int = 0
    row: int = 0
    name: str = ""
    sources: tuple[str, ...] = ()

    def slots(self, relation: Relation) -> Iterator[tuple[Any, ...]]:
        """Yield the slots that a fact fills, each with its reason first. No other fact may fill the same slot."""
        yield SAME, self.relation, self.subject, self.key
        if relation.has_one_object():
            yield ONE_OBJECT, self.relation, self.subject
        if relation.distinct_values and self.linked:
            yield ONE_SUBJECT, self.relation, self.key


def settled(claims: Iterable[Claim], relations: Mapping[str, Relation]) -> Iterator[tuple[Claim, str, Claim]]:
    """Yield each claim that is removed, the reason, and the claim that stays."""
    taken: dict[tuple[Any, ...], Claim] = {}
    for claim in sorted(claims, key=lambda one: (-one.confidence, one.shard, one.relation, one.place)):
        slots = [*claim.slots(relations[claim.relation])]
        lost = next((slot for slot in slots if slot in taken), None)
        if lost is None:
            taken |= dict.fromkeys(slots, claim)
        else:
            yield claim, lost[0], taken[lost]


class Settled(NamedTuple):
    """A shard's tables without removed facts, and the removed facts with the columns of `REMOVED`."""

    tables: Tables
    removed: pl.DataFrame


class Settlement:
    """Facts of a base to be removed or merged, because they contradict or repeat others.

    blocks: function from the name of a step to the shards' numbers and facts. relations: relations by their names in
    facts.
    """

    def __init__(
        self,
        blocks: Callable[[str], Iterable[tuple[int, pl.DataFrame]]],
        relations: Mapping[str, Relation],
        entities: NamedEntities,
    ) -> None:
        self.entities = entities
        self._distinct = [name for name, relation in relations.items() if relation.distinct_values]
        self._several = entities.several().implode()
        self._contested = self._shared(facts for _, facts in blocks("compare (shards)")).implode()
        found = pl.concat(self._claims(facts, number) for number, facts in blocks("settle (shards)"))
        single = [name for name, relation in relations.items() if relation.has_one_object()]
        meets = pl.struct("relation", "key").is_duplicated() | pl.col("relation").is_in(single)
        gone = [*settled((Claim(*row) for row in found.filter(meets).iter_rows()), relations)]
        rows = [(one.shard, one.relation, one.place, why, kept.row, kept.name) for one, why, kept in gone]
        schema = {"shard": pl.Int64, "relation": pl.String, **{name: REMOVED[name] for name in [*REMOVED][-4:]}}
        self._gone = pl.DataFrame(rows, schema=schema, orient="row")
        more = [(kept.shard, kept.relation, kept.place, one.sources) for one, why, kept in gone if why == SAME]
        schema = {"shard": pl.Int64, "relation": pl.String, "place": pl.Int64, "more_sources": pl.List(pl.String)}
        merged = pl.DataFrame(more, schema=schema, orient="row").explode("more_sources")
        self._more = merged.group_by("shard", "relation", "place").agg(pl.col("more_sources").unique().sort())

    def _shared(self, blocks: Iterable[pl.DataFrame]) -> pl.Series:
        """Return the hash of each object of several facts, for relations whose subjects share no object."""
        one = pl.col("relation").is_in(self._distinct) & pl.col("object_id").is_not_null()
        named = pl.concat(self._keyed(facts.filter(one))["claimed"] for facts in blocks)
        return named.filter(named.is_duplicated()).unique()

    def _keyed(self, facts: pl.DataFrame) -> pl.DataFrame:
        """Return facts with their entities, a key for each object, and a hash of key and relation."""
        keyed = self.entities.tagged(facts).with_columns(key=OBJECT)
        return keyed.with_columns(claimed=pl.struct("relation", "key").hash(0))

    def _claims(self, facts: pl.DataFrame, shard: int) -> pl.DataFrame:
        """Return the facts of a shard that may compete for a slot, with the columns of `Claim`."""
        tagged = self._keyed(facts).with_columns(PLACE, linked=pl.col("object_id").is_not_null())
        meets = (
            pl.col("subject_entity").is_in(self._several)
            | pl.struct("subject_entity", "relation", "key").is_duplicated()
        )
        meets |= pl.col("relation").is_in(self._distinct) & pl.col("linked") & pl.col("claimed").is_in(self._contested)
        shown = {"shard": pl.lit(shard, pl.Int64), "row": pl.col("subject_row"), "name": pl.col("object")}
        return tagged.filter(meets).with_columns(**shown, subject="subject_entity").select(Claim._fields)

    def touches(self, number: int) -> bool:
        """Return whether a shard loses facts."""
        return number in self._gone["shard"]

    def counts(self) -> dict[str, int]:
        """Return the number of removed facts by reason."""
        return dict(sorted(self._gone["reason"].value_counts().iter_rows()))

    def of(self, number: int, tables: Tables) -> Settled:
        """Return a shard's final tables. A query that loses all its facts is added to `nothing`."""
        facts = self.entities.tagged(tables.facts).with_columns(PLACE).drop("more_sources")
        gone, more = (one.filter(pl.col("shard") == number).drop("shard") for one in (self._gone, self._more))
        at = ["relation", "place"]
        removed = facts.join(gone, on=at, maintain_order="left").with_columns(more_sources=None)
        kept = facts.join(gone, on=at, how="anti", maintain_order="left")
        kept = kept.join(more, on=at, how="left", maintain_order="left")
        emptied = removed.join(kept, on=QUERY, how="anti", maintain_order="left").unique(QUERY, maintain_order=True)
        nothing = emptied.with_columns(reason=pl.lit(REASON), confidence=pl.lit(None, pl.Float64)).select(*NOTHING)
        made = tables._replace(facts=kept.select(*FACTS), nothing=pl.concat([tables.nothing, nothing]))
        return Settled(made, removed.select(pl.col(name).cast(kind) for name, kind in REMOVED.items()))


def restored(tables: Tables, removed: pl.DataFrame) -> Tables:
    """Return a shard's tables as they were before settlement."""
    frames = [FACTS_FRAME]
    for name in pl.concat([tables.facts["relation"], removed["relation"]]).unique(maintain_order=True):
        kept, gone = (one.filter(pl.col("relation") == name) for one in (tables.facts, removed))
        free = np.delete(np.arange(len(kept) + len(gone)), gone["place"].to_numpy())
        whole = pl.concat([kept.with_columns(place=pl.Series(free, dtype=pl.Int64)), gone.select(*FACTS, "place")])
        frames.append(whole.sort("place").drop("place"))
    before = pl.concat(frames).with_columns(pl.lit(None, FACTS[name]).alias(name) for name in SETTLED)
    return tables._replace(facts=before, nothing=tables.nothing.filter(pl.col("reason") != REASON))


FACTS_FRAME = pl.DataFrame(schema=FACTS)
