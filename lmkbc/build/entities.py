"""Entities that facts name, each once, whatever they are called: by QID, else by the folded form of a name.

A name without a QID is the entity of this name that has a QID, if there is exactly one. An alias index adds names of
the entities that facts link; it never adds an entity. Memory grows with the number of names, not of facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import polars as pl

from lmkbc.build.classes import Classes
from lmkbc.link.index import AliasIndex
from lmkbc.names import folded_key
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
COUNTS = ("weight", "as_subject", "as_object")
UNITS = 1_000_000
"""Units of a vote of weight 1: whole numbers have the same sum in any order."""
WEIGHT = (pl.col("confidence") * UNITS).round().cast(pl.Int64)
"""Weight of a fact's votes for the classes of its subject and object."""


class NamedEntities:
    """The entities of some facts, numbered from 0 in the order of their first mention.

    facts: the blocks of a base. relations: by the names that facts have. index: knows more names of entities.
    """

    def __init__(
        self,
        facts: Iterable[pl.DataFrame],
        relations: Mapping[str, Relation],
        classes: Classes,
        index: AliasIndex | None = None,
    ) -> None:
        self._classes = classes
        self._objects = [name for name, relation in relations.items() if relation.kind == "entity"]
        self._types = {
            side: {name: getattr(relation, f"{side}_type").qid for name, relation in relations.items()}
            for side in ("subject", "object")
        }
        held = [
            pl.DataFrame(schema={"name": pl.String, "id": pl.String, "type": pl.String} | dict.fromkeys(COUNTS, int))
        ]
        for block in facts:
            held += [self._mentions(block, "subject"), self._mentions(block, "object")]
            if sum(map(len, held[1:])) > len(held[0]):
                held = [_summed(pl.concat(held))]
        self._mentioned = _numbered(_summed(pl.concat(held)), index)
        forms = self._mentioned.select(_hash("name", "id"), "entity").sort("hash")
        self._hashes, self._numbers = forms["hash"].to_numpy(), forms["entity"].to_numpy()

    def _mentions(self, facts: pl.DataFrame, side: str) -> pl.DataFrame:
        """Return how often the facts of a block name what in their subjects or objects, and the classes they imply."""
        own = facts if side == "subject" else facts.filter(pl.col("relation").is_in(self._objects))
        type_ = pl.col("relation").replace_strict(self._types[side], return_dtype=pl.String)
        counts = {f"as_{one}": pl.lit(int(one == side), pl.Int64) for one in ("subject", "object")}
        return _summed(own.select(name=side, id=f"{side}_id", type=type_, weight=WEIGHT, **counts))

    def tagged(self, facts: pl.DataFrame) -> pl.DataFrame:
        """Return facts with the numbers of their entities; null for an object that is none."""
        is_entity = {"subject": pl.lit(True), "object": pl.col("relation").is_in(self._objects)}
        return facts.with_columns(
            pl.when(named).then(pl.Series(self._of(facts, side))).alias(f"{side}_entity")
            for side, named in is_entity.items()
        )

    def _of(self, facts: pl.DataFrame, side: str) -> Any:
        """Return the number of the entity on one side of each fact; any number where that is none."""
        places = np.searchsorted(self._hashes, facts.select(_hash(side, f"{side}_id"))["hash"].to_numpy())
        return self._numbers[np.minimum(places, len(self._numbers) - 1)]

    def several(self) -> pl.Series:
        """Return the entities that are subjects under several names."""
        subjects = self._mentioned.filter(pl.col("as_subject") > 0).unique(["entity", "name", "id"])
        return subjects.filter(pl.col("entity").is_duplicated())["entity"].unique()

    def table(self) -> pl.DataFrame:
        """Return a row per entity: its QID, its names, the most frequent first, and the class with the most votes."""
        often = pl.col("as_subject") + pl.col("as_object")
        named = self._mentioned.group_by("entity", "name", maintain_order=True).agg(often.sum())
        names = named.sort("as_subject", descending=True, maintain_order=True).group_by("entity").agg("name")
        votes = _by_entity(self._mentioned, "type").with_columns(weight=pl.col("weight") / UNITS)
        counts = self._mentioned.group_by("entity").agg(pl.col("own").first(), pl.col(*COUNTS[1:]).sum())
        listed = votes.group_by("entity", maintain_order=True).agg(
            votes=pl.struct(pl.col("type").alias("class"), "weight"), types="type", weights="weight"
        )
        classes = [
            self._classes.voted(dict(zip(types, weights, strict=True)))
            for types, weights in listed.select("types", "weights").iter_rows()
        ]
        made = listed.with_columns(pl.Series("class", classes, pl.String)).join(names, on="entity")
        made = made.join(counts, on="entity").with_columns(names="name", name=pl.col("name").list.first(), id="own")
        return made.sort("entity").select(pl.col(name).cast(kind) for name, kind in ENTITIES.items())


def _hash(name: str, qid: str) -> pl.Expr:
    """Return what stands for a name with a QID, or without: a look-up takes no longer in a large base."""
    return pl.struct(pl.col(name).alias("name"), pl.col(qid).alias("id")).hash(0).alias("hash")


def _summed(mentions: pl.DataFrame) -> pl.DataFrame:
    return mentions.group_by("name", "id", "type", maintain_order=True).agg(pl.col(*COUNTS).sum())


def _by_entity(mentions: pl.DataFrame, column: str) -> pl.DataFrame:
    """Return the weight of each value of a column, for each entity, the highest first."""
    summed = mentions.group_by("entity", column, maintain_order=True).agg(pl.col("weight").sum())
    return summed.sort("weight", descending=True, maintain_order=True)


def _numbered(mentions: pl.DataFrame, index: AliasIndex | None) -> pl.DataFrame:
    """Return mentions with the number and the QID, if any, of the entity of each."""
    names = mentions["name"].unique(maintain_order=True)
    keys = pl.DataFrame({"name": names, "key": [folded_key(name) or name for name in names]})
    keyed = mentions.join(keys, on="name", maintain_order="left")
    linked = keyed.filter(pl.col("id").is_not_null())
    of_key = linked.group_by("key").agg(pl.col("id").unique()).filter(pl.col("id").list.len() == 1)
    known = dict(of_key.with_columns(pl.col("id").list.first()).iter_rows())
    if index is not None:
        bare = keyed.join(linked, on="key", how="anti")["name"].unique(maintain_order=True)
        known |= _aliases(bare, {*linked["id"]}, index)
    own = pl.coalesce("id", pl.col("key").replace_strict(known, default=None, return_dtype=pl.String))
    made = keyed.with_columns(own=own).with_columns(group=pl.coalesce("own", pl.lit("name ") + pl.col("key")))
    numbers = made.select("group").unique(maintain_order=True).with_row_index("entity")
    return made.join(numbers, on="group", maintain_order="left").select(
        *mentions.columns, "own", pl.col("entity").cast(pl.Int64)
    )


def _aliases(names: Iterable[str], ids: set[str], index: AliasIndex) -> dict[str, str]:
    """Return the folded name of an entity -> its QID, for names that an index has of exactly one of some entities."""
    found = {folded_key(name) or name: ids & {hit.id for hit in index.exact(name)} for name in names}
    return {
        key: qid for key, (qid, *others) in ((key, sorted(hits)) for key, hits in found.items() if hits) if not others
    }
