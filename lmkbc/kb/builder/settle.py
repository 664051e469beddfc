"""Settlement of a base when all facts are there: its entities, and the facts that leave `facts`.

Entities: each once. A subject that the user listed is identified by its QID, else by its row, so that no likeness of
names merges two of them. Another mention is identified by its QID. Without one, it means the listed subject of the same
spelling, or the entity with this alias in an index, if there is exactly one. If there is none, names with one key
(`name_key`) mean one entity: that with a QID and such a name, if there is exactly one, and it is not listed. An index
never adds an entity.

Memory grows with the number of names, not of facts. A pair of name and QID is stored as a 64-bit hash.

Facts: duplicates leave, and facts that contradict a surer one. Facts compete for slots: one object per subject, one
subject per object. The fact with the highest confidence wins. No fact is lost: the table `removed` keeps it, the
reason, and the fact that stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from polars import selectors as cs

from lmkbc.kb.base.schemas import FACTS, NOTHING, SETTLED
from lmkbc.kb.builder.facts import Tables
from lmkbc.kb.builder.subjects import Classes, hashes
from lmkbc.link.index import AliasIndex
from lmkbc.names import name_key, spelling
from lmkbc.relation import Relation

VOTE = pl.Struct({"class": pl.String, "weight": pl.Float64})
ENTITIES: dict[str, Any] = {
    "entity": pl.Int64,
    "id": pl.String,
    "name": pl.String,
    "names": pl.List(pl.String),
    "class": pl.String,
    "votes": pl.List(VOTE),
    "as_subject": pl.Int64,
    "as_object": pl.Int64,
}
NAMES: dict[str, Any] = {
    "hash": pl.UInt64,
    "name": pl.String,
    "id": pl.String,
    "row": pl.UInt64,
    "as_subject": pl.Int64,
    "as_object": pl.Int64,
}
"""Columns of names. row: of the subject, if the user listed it."""
SIDES = ("subject", "object")
LEAST, SHARE = 1 << 16, 4
"""Least number of rows to hold before they are summed; at least a quarter of the rows that are already summed."""
PIECE = 1 << 13
"""Entities whose names and classes are listed together. Lists of more would take much memory."""
UNITS = 1_000_000
"""Units of a vote of weight 1. Sums of whole numbers are the same in any order."""
WEIGHT = (pl.col("confidence") * UNITS).round().cast(pl.Int64)
"""Weight of a fact's votes for the classes of its subject and object."""


class NamedEntities:
    """The entities of some facts, numbered from 0 in the order of their first mention.

    facts: blocks of a base. relations: relations by their names in facts. index: index with more names of entities.
    listed: number of subjects that the user listed; the rows of others are higher.
    """

    def __init__(
        self,
        facts: Iterable[pl.DataFrame],
        relations: Mapping[str, Relation],
        classes: Classes,
        index: AliasIndex | None = None,
        listed: int = 0,
    ) -> None:
        self._classes, self._listed = classes, listed
        self._objects = [name for name, relation in relations.items() if relation.has_entities()]
        self._types = {
            side: {name: getattr(relation, f"{side}_type").qid for name, relation in relations.items()}
            for side in SIDES
        }
        kinds = pl.Enum(sorted({qid for types in self._types.values() for qid in types.values()}))
        names = _Sums(NAMES, "hash")
        votes = _Sums({"hash": pl.UInt64, "type": kinds, "weight": pl.Int64}, "hash", "type")
        for block in facts:
            for side in SIDES:
                mentions = self._mentions(block, side, kinds)
                names.add(mentions)
                votes.add(mentions)
        self._names = _numbered(names.all(), index)
        forms = self._names.select("hash", "entity").sort("hash")
        self._hashes, self._numbers = forms["hash"].to_numpy(), forms["entity"].to_numpy()
        summed = votes.all()
        self._votes = summed.select("type", "weight", entity=pl.Series(self._at(summed["hash"]), dtype=pl.Int64))

    def _mentions(self, facts: pl.DataFrame, side: str, kinds: pl.Enum) -> pl.DataFrame:
        """Return the subjects or objects of a block's facts, with the classes that their relations imply."""
        mentioned = facts if side == "subject" else facts.filter(pl.col("relation").is_in(self._objects))
        type_ = pl.col("relation").replace_strict(self._types[side], return_dtype=pl.String).cast(kinds)
        counts = {f"as_{other}": pl.lit(int(other == side), pl.Int64) for other in SIDES}
        return mentioned.select(
            self._hash(side), name=side, id=f"{side}_id", row=self._row(side), type=type_, weight=WEIGHT, **counts
        )

    def _row(self, side: str) -> pl.Expr:
        """Return the rows of subjects that the user listed; null for other mentions."""
        is_listed = (pl.col("subject_row") < self._listed) & pl.lit(side == "subject")
        return pl.when(is_listed).then(pl.col("subject_row").cast(pl.UInt64))

    def _hash(self, side: str) -> pl.Expr:
        """Return a hash of a mention's values, so that the time of a look-up does not grow with the base."""
        values = pl.col(side).alias("name"), pl.col(f"{side}_id").alias("id"), self._row(side).alias("row")
        return pl.struct(values).hash(0).alias("hash")

    def tagged(self, facts: pl.DataFrame) -> pl.DataFrame:
        """Return facts with the numbers of their entities; null for an object that is not an entity."""
        is_entity = {"subject": pl.lit(True), "object": pl.col("relation").is_in(self._objects)}
        return facts.with_columns(
            pl.when(named).then(pl.Series(self._at(facts.select(self._hash(side))["hash"]))).alias(f"{side}_entity")
            for side, named in is_entity.items()
        )

    def _at(self, hashes: pl.Series) -> Any:
        """Return the number of each mention's entity; an arbitrary number if there is no entity."""
        places = np.searchsorted(self._hashes, hashes.to_numpy())
        return self._numbers[np.minimum(places, len(self._numbers) - 1)]

    def ids(self) -> list[str]:
        """Return the QIDs of the entities."""
        return self._names["qid"].drop_nulls().unique().sort().to_list()

    def several(self) -> pl.Series:
        """Return the entities that are subjects under more than one name."""
        subjects = self._names.filter(pl.col("as_subject") > 0)["entity"].to_numpy()
        return pl.Series(np.flatnonzero(np.bincount(subjects) > 1), dtype=pl.Int64)

    def tables(self, rows: int) -> Iterator[pl.DataFrame]:
        """Yield tables of at most `rows` entities: QID, names (most frequent first), class with the most votes."""
        end = self._names.select(pl.col("entity").max() + 1).item() or 0
        for first in range(0, end, rows):
            pieces = range(first, min(first + rows, end), PIECE)
            yield pl.concat([self._table(start, min(start + PIECE, first + rows)) for start in pieces])

    def _table(self, start: int, end: int) -> pl.DataFrame:
        """Return the entities with numbers from `start` up to `end`, which is excluded."""
        some = pl.col("entity").is_between(start, end, closed="left")
        named, votes = self._names.filter(some), self._votes.filter(some)
        often = named.with_columns(often=pl.col("as_subject") + pl.col("as_object"))
        names = _by_entity(often, "name", "often").group_by("entity").agg(names="name", name=pl.col("name").first())
        mentions = pl.col("as_subject", "as_object").sum()
        counts = named.group_by("entity").agg(mentions, id=pl.col("qid").first())
        weighed = _by_entity(votes, "type", "weight").with_columns(
            pl.col("type").cast(pl.String), pl.col("weight") / UNITS
        )
        listed = weighed.group_by("entity", maintain_order=True).agg(
            votes=pl.struct(pl.col("type").alias("class"), "weight"), types="type", weights="weight"
        )
        classes = [
            self._classes.voted(dict(zip(types, weights, strict=True)))
            for types, weights in listed.select("types", "weights").iter_rows()
        ]
        made = listed.with_columns(pl.Series("class", classes, pl.String)).join(names, on="entity")
        made = made.join(counts, on="entity").sort("entity")
        return made.select(pl.col(name).cast(kind) for name, kind in ENTITIES.items())


class _Sums:
    """Rows by key. Their whole numbers are summed while rows arrive, so that few rows are held."""

    def __init__(self, schema: Mapping[str, Any], *keys: str) -> None:
        self._keys, self._columns, self._held = keys, [*schema], [pl.DataFrame(schema=schema)]

    def add(self, rows: pl.DataFrame) -> None:
        """Add rows; extra columns are ignored."""
        self._held.append(_summed(rows.select(self._columns), *self._keys))
        if sum(map(len, self._held[1:])) > max(len(self._held[0]) // SHARE, LEAST):
            self._held = [self.all()]

    def all(self) -> pl.DataFrame:
        """Return each key once, and release the memory."""
        held, self._held = self._held, []
        return _summed(pl.concat(held), *self._keys)


def _summed(rows: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Return the first row of each key, with the sums of its whole numbers. Sorting needs less memory than hashing."""
    order, new = np.lexsort([_values(rows[key]) for key in keys]), np.zeros(len(rows), dtype=bool)
    new[:1] = True
    for key in keys:
        values = _values(rows[key])[order]
        new[1:] |= values[1:] != values[:-1]
    starts = np.flatnonzero(new)
    at = np.argsort(order[starts])
    places, counted = order[starts[at]], cs.signed_integer()
    sums = (
        pl.Series(column.name, np.add.reduceat(_values(column)[order], starts)[at]) for column in rows.select(counted)
    )
    return rows.select(~counted)[places].with_columns(sums).select(rows.columns)


def _values(column: pl.Series) -> Any:
    return column.to_physical().to_numpy()


def _by_entity(rows: pl.DataFrame, column: str, weight: str) -> pl.DataFrame:
    """Return the weight of each value of a column per entity, the highest first."""
    summed = rows.group_by("entity", column, maintain_order=True).agg(pl.col(weight).sum())
    return summed.sort(weight, descending=True, maintain_order=True)


def _numbered(names: pl.DataFrame, index: AliasIndex | None) -> pl.DataFrame:
    """Return names with the number of their entity, and its QID if there is one."""
    is_listed, is_linked = pl.col("row").is_not_null(), pl.col("id").is_not_null()
    keyed = names.with_columns(key=hashes(names["name"], name_key), spelt=hashes(names["name"], spelling))
    linked = keyed.filter(is_linked).with_columns(
        other=pl.col("id").hash(0), listed=is_listed.any().over("id"), qid="id", own=pl.lit(None, pl.UInt64)
    )
    bare = keyed.filter(is_listed & ~is_linked).with_columns(other="row", qid="id", own="row")
    others = linked.filter("listed").join(bare, on="spelt", how="anti")
    spelt = pl.concat(_single(some, "spelt").select("spelt", "qid", "own") for some in (bare, others))
    known = _single(linked, "key").filter(~pl.col("listed")).select("key", known="qid")
    if index is not None:
        free = keyed.filter(~is_listed & ~is_linked).join(spelt, on="spelt", how="anti")
        free = free.join(linked.filter(~pl.col("listed")), on="key", how="anti")
        hits = _aliases(free["name"].unique(maintain_order=True), {*linked["id"]}, index)
        aliases = pl.DataFrame([*hits.items()], schema={"name": pl.String, "qid": pl.String}, orient="row")
        aliases = aliases.select("qid", spelt=hashes(aliases["name"], spelling), own=pl.lit(None, pl.UInt64))
        spelt = pl.concat([spelt, aliases.select(spelt.columns)])
    made = keyed.join(spelt, on="spelt", how="left", maintain_order="left")
    made = made.join(known, on="key", how="left", maintain_order="left")
    meant = (
        pl.when(is_linked)
        .then("id")
        .when(~is_listed)
        .then(pl.coalesce("qid", pl.when(pl.col("own").is_null()).then("known")))
    )
    made = made.with_columns(qid=meant, own=pl.coalesce("row", "own"))
    linked_or_key = pl.when(pl.col("qid").is_not_null()).then(pl.col("qid").hash(1)).otherwise("key")
    group = (
        pl.when(pl.col("qid").is_null() & pl.col("own").is_not_null())
        .then(pl.col("own").hash(2))
        .otherwise(linked_or_key)
    )
    _, firsts, groups = np.unique(made.select(group).to_series().to_numpy(), return_index=True, return_inverse=True)
    numbers = pl.Series(np.argsort(np.argsort(firsts))[groups], dtype=pl.Int64)
    return made.select(*names.columns, "qid", entity=numbers)


def _single(rows: pl.DataFrame, at: str) -> pl.DataFrame:
    """Return a row for each value of a column that has one value of `other` only."""
    distinct = _summed(rows, at, "other").with_columns(count=pl.lit(1, pl.Int64))
    return _summed(distinct, at).filter(pl.col("count") == 1)


def _aliases(names: Iterable[str], ids: set[str], index: AliasIndex) -> dict[str, str]:
    """Return name -> QID, for names that are an alias of exactly one of the given entities in the index."""
    matches = {name: ids & {hit.id for hit in index.exact(name)} for name in names}
    return {name: min(hits) for name, hits in matches.items() if len(hits) == 1}


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
    for claim in sorted(claims, key=lambda claim: (-claim.confidence, claim.shard, claim.relation, claim.place)):
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
        contested = pl.concat(self._claims(facts, number) for number, facts in blocks("settle (shards)"))
        single = [name for name, relation in relations.items() if relation.has_one_object()]
        meets = pl.struct("relation", "key").is_duplicated() | pl.col("relation").is_in(single)
        gone = [*settled((Claim(*row) for row in contested.filter(meets).iter_rows()), relations)]
        rows = [(lost.shard, lost.relation, lost.place, why, kept.row, kept.name) for lost, why, kept in gone]
        schema = {"shard": pl.Int64, "relation": pl.String, **{name: REMOVED[name] for name in [*REMOVED][-4:]}}
        self._gone = pl.DataFrame(rows, schema=schema, orient="row")
        more = [(kept.shard, kept.relation, kept.place, lost.sources) for lost, why, kept in gone if why == SAME]
        schema = {"shard": pl.Int64, "relation": pl.String, "place": pl.Int64, "more_sources": pl.List(pl.String)}
        merged = pl.DataFrame(more, schema=schema, orient="row").explode("more_sources")
        self._more = merged.group_by("shard", "relation", "place").agg(pl.col("more_sources").unique().sort())
        self.label({})

    def label(self, labels: Mapping[str, str]) -> None:
        """Add the label of each linked object to the facts that stay. labels: QID -> label."""
        schema = {"object_id": pl.String, "object_label": pl.String}
        self._labels = pl.DataFrame([*labels.items()], schema=schema, orient="row")

    def _shared(self, blocks: Iterable[pl.DataFrame]) -> pl.Series:
        """Return the hash of each object of several facts, for relations whose subjects share no object."""
        distinct = pl.col("relation").is_in(self._distinct) & pl.col("object_id").is_not_null()
        named = pl.concat(self._keyed(facts.filter(distinct))["claimed"] for facts in blocks)
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
        gone, more = (frame.filter(pl.col("shard") == number).drop("shard") for frame in (self._gone, self._more))
        at = ["relation", "place"]
        removed = facts.join(gone, on=at, maintain_order="left").with_columns(more_sources=None)
        kept = facts.join(gone, on=at, how="anti", maintain_order="left")
        kept = kept.join(more, on=at, how="left", maintain_order="left").drop("object_label")
        kept = kept.join(self._labels, on="object_id", how="left", maintain_order="left")
        emptied = removed.join(kept, on=QUERY, how="anti", maintain_order="left").unique(QUERY, maintain_order=True)
        nothing = emptied.with_columns(reason=pl.lit(REASON), confidence=pl.lit(None, pl.Float64)).select(*NOTHING)
        made = tables._replace(facts=kept.select(*FACTS), nothing=pl.concat([tables.nothing, nothing]))
        return Settled(made, removed.select(pl.col(name).cast(kind) for name, kind in REMOVED.items()))


def restored(tables: Tables, removed: pl.DataFrame) -> Tables:
    """Return a shard's tables as they were before settlement."""
    frames = [FACTS_FRAME]
    for name in pl.concat([tables.facts["relation"], removed["relation"]]).unique(maintain_order=True):
        kept, gone = (frame.filter(pl.col("relation") == name) for frame in (tables.facts, removed))
        free = np.delete(np.arange(len(kept) + len(gone)), gone["place"].to_numpy())
        whole = pl.concat([kept.with_columns(place=pl.Series(free, dtype=pl.Int64)), gone.select(*FACTS, "place")])
        frames.append(whole.sort("place").drop("place"))
    before = pl.concat(frames).with_columns(pl.lit(None, FACTS[name]).alias(name) for name in SETTLED)
    return tables._replace(facts=before, nothing=tables.nothing.filter(pl.col("reason") != REASON))


FACTS_FRAME = pl.DataFrame(schema=FACTS)
