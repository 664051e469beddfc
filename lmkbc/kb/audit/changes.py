"""Differences of two knowledge bases: facts that came, went and changed, relation by relation.

A subject or an object is the same by QID, else by folded name; a number or a date by its value. An object that has a
QID in one base only is the same by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import polars as pl

from lmkbc.kb.base.knowledge import Knowledge
from lmkbc.kb.base.schemas import FACTS
from lmkbc.kb.pages.entity_pieces import keys

FACT: dict[str, Any] = dict.fromkeys(("relation", "subject", "subject_id", "object", "object_id"), pl.String)
CAME: dict[str, Any] = {**FACT, "confidence": pl.Float64, "other_base": pl.String}
"""Columns of facts of one base. other_base: what the other base has for the query: objects, nothing, or no answer."""
SIDES: dict[str, Any] = {"object": pl.String, "object_id": pl.String, "confidence": pl.Float64, "rank": pl.Int64}
CHANGED: dict[str, Any] = {
    **{name: FACT[name] for name in ("relation", "subject", "subject_id")},
    **{f"{side}_{name}": kind for name, kind in SIDES.items() for side in ("first", "second")},
    "change": pl.List(pl.String),
}
KINDS = ("threshold", "rank", "link", "object")
"""Kinds of changes: confidence crossed the threshold; another rank; another QID or none; another only object."""
COUNTS: dict[str, Any] = {"relation": pl.String} | dict.fromkeys(
    ("first", "second", "same", "came", "went", "changed", *KINDS), pl.Int64
)
_COLUMNS = ("subject_row", "subject", "subject_id", "object", "object_id", "literal", "confidence")
_SCHEMA = {name: FACTS[name] for name in _COLUMNS}
_ABOUT = ("subject", "subject_id", *SIDES)


class Changes(NamedTuple):
    """Differences of two bases: number per relation, and the facts, the surest ones first."""

    counts: pl.DataFrame
    came: pl.DataFrame
    went: pl.DataFrame
    changed: pl.DataFrame


def changes(first: Knowledge, second: Knowledge, names: Sequence[str], least: float) -> Changes:
    """Return what differs in some relations, which are compared one by one. least: threshold of confidence."""
    parts = [_of(name, (first, second), least) for name in names]
    schemas = (COUNTS, CAME, CAME, CHANGED)
    counts, came, went, changed = (
        pl.concat([pl.DataFrame(schema=schema), *(part[at] for part in parts)]) for at, schema in enumerate(schemas)
    )
    came, went = (frame.sort("confidence", descending=True, maintain_order=True) for frame in (came, went))
    return Changes(counts, came, went, changed)


def _of(name: str, bases: Sequence[Knowledge], least: float) -> Changes:
    mine, theirs = (_facts(base, name) for base in bases)
    whole = {"first": len(mine), "second": len(theirs)}
    pairs = list[pl.DataFrame]()
    for on, only_one in (("key", False), ("name", False), ("", True)):
        if only_one:  # of the facts that are left, those of subjects with one fact in each base
            left, right = (frame.filter(pl.len().over("of") == 1, pl.col("facts") == 1) for frame in (mine, theirs))
        else:
            left, right = (frame.unique(["of", on], maintain_order=True) for frame in (mine, theirs))
        by = ["of", *([on] if on else [])]
        found = left.join(right, on=by, suffix="_second", maintain_order="left").with_columns(other=pl.lit(only_one))
        if on == "name":
            found = found.filter(pl.col("object_id").is_null() | pl.col("object_id_second").is_null())
        pairs.append(found.select("other", *_both("place"), *_both(*_ABOUT)))
        mine = mine.join(found, on="place", how="anti", maintain_order="left")
        theirs = theirs.join(found, left_on="place", right_on="place_second", how="anti", maintain_order="left")
    same = pl.concat(pairs)
    crossed = (pl.col("confidence") >= least) != (pl.col("confidence_second") >= least)
    flags = {
        "threshold": crossed,
        "rank": pl.col("rank") != pl.col("rank_second"),
        "link": ~pl.col("other") & pl.col("object_id").ne_missing(pl.col("object_id_second")),
        "object": pl.col("other"),
    }
    kinds = pl.concat_list([pl.when(flag).then(pl.lit(kind)) for kind, flag in flags.items()]).list.drop_nulls()
    changed = same.with_columns(change=kinds).filter(pl.col("change").list.len() > 0)
    told = changed.select(
        pl.lit(name).alias("relation"),
        "subject",
        "subject_id",
        *(pl.col(f"{one}{end}").alias(f"{side}_{one}") for one in SIDES for side, end in _SIDE_ENDS),
        "change",
    )
    counts = whole | {"same": len(same) - len(changed), "came": len(theirs), "went": len(mine), "changed": len(changed)}
    counts |= {kind: int(changed["change"].list.contains(kind).sum()) for kind in KINDS}
    came, went = (_told(frame, name, other) for frame, other in ((theirs, bases[0]), (mine, bases[1])))
    return Changes(pl.DataFrame([{"relation": name, **counts}], schema=COUNTS), came, went, told)


_SIDE_ENDS = (("first", ""), ("second", "_second"))


def _both(*names: str) -> list[str]:
    return [f"{name}{end}" for name in names for _, end in _SIDE_ENDS]


def _facts(base: Knowledge, relation: str) -> pl.DataFrame:
    """Return a base's facts of a relation, the surest first, with their keys and ranks."""
    parts = base.parts(relation, _COLUMNS) if relation in base.relations else ()
    whole: pl.DataFrame = pl.concat([pl.DataFrame(schema=_SCHEMA), *parts])
    facts = whole.sort("confidence", descending=True, maintain_order=True)
    of = pl.Series(keys(facts["subject_id"], facts["subject"]), dtype=pl.String)
    folded = pl.Series(keys([None] * len(facts), facts["object"]), dtype=pl.String)
    keyed = facts.with_columns(of=of, name=pl.coalesce("literal", folded), place=pl.int_range(pl.len()))
    rank = pl.col("confidence").rank("min", descending=True).over("of").cast(pl.Int64)
    return keyed.with_columns(key=pl.coalesce("literal", "object_id", "name"), rank=rank, facts=pl.len().over("of"))


def _told(facts: pl.DataFrame, relation: str, other: Knowledge) -> pl.DataFrame:
    """Return facts of one base with what the other base has for their queries."""
    states = pl.concat([pl.DataFrame(schema={"of": pl.String, "other_base": pl.String}), *_states(other, relation)])
    joined = facts.join(
        states.unique("of", keep="first", maintain_order=True), on="of", how="left", maintain_order="left"
    )
    return joined.with_columns(
        relation=pl.lit(relation), other_base=pl.col("other_base").fill_null("not asked")
    ).select(*CAME)


def _states(base: Knowledge, relation: str) -> Iterator[pl.DataFrame]:
    """Yield what a base has for the queries of a relation."""
    if relation not in base.relations:
        return
    for frame in base.parts(relation, ("subject_row", "subject", "subject_id", "confidence")):
        yield _state(frame, pl.lit("other objects"))
    for table, word in (("nothing", "nothing"), ("missing", "no answer")):
        for frame in base.answers(table):
            own = frame.filter(pl.col("relation") == relation)
            yield _state(own, pl.format(f"{word}: {{}}", "reason"))


def _state(frame: pl.DataFrame, state: pl.Expr) -> pl.DataFrame:
    of = pl.Series("of", keys(frame["subject_id"], frame["subject"]), pl.String)
    return frame.select(of, state.alias("other_base"))
