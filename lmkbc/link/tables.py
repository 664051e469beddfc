"""Entities from tables (`text`, `id` and what else is known) and from the objects of labelled rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import polars as pl

from lmkbc.errors import InputError, did_you_mean
from lmkbc.link.builder import Entity
from lmkbc.link.names import as_qid
from lmkbc.link.train_objects import as_name
from lmkbc.types import Example, Relation

COLUMNS = {"text": pl.String, "id": pl.String, "label": pl.String, "description": pl.String, "classes": pl.String}
READERS = {".csv": ",", ".tsv": "\t", ".json": "", ".jsonl": "", ".ndjson": ""}


def read_table(path: Path) -> Iterator[Entity]:
    """Entities of a CSV, TSV, JSON (list of objects) or JSONL table, one name a row.

    Columns: text and id, both required; label (default: the entity's first text), description, classes (QIDs parted by
    spaces), popularity (a whole number). Raises InputError naming the first row whose id is no QID.
    """
    frame = _read(path)
    for name in frame.columns:
        if name not in {*COLUMNS, "popularity"}:
            raise InputError(f"{path}, column {name}: unknown; {did_you_mean(name, {*COLUMNS, 'popularity'})}")
    for name in ("text", "id"):
        if name not in frame.columns:
            raise InputError(f"{path} lacks the column {name!r}: an alias table needs text and id")
    lacking = [pl.lit("").alias(name) for name in COLUMNS if name not in frame.columns]
    if "popularity" not in frame.columns:
        lacking.append(pl.lit(0).alias("popularity"))
    frame = frame.with_columns(lacking).with_columns(
        *(pl.col(name).cast(pl.String).fill_null("") for name in COLUMNS),
        pl.col("popularity").cast(pl.Int64, strict=False).fill_null(0),
    )
    wrong = frame.with_row_index("row", 1).filter(~pl.col("id").str.contains(r"^Q[1-9]\d*$"))
    if wrong.height:
        row, text, qid = wrong.select("row", "text", "id").row(0)
        raise InputError(f"{path}, row {row}, column id: {qid!r} (for {text!r}) is no QID; write one like 'Q42'")
    merged = frame.group_by("id", maintain_order=True).agg(
        pl.col("label").filter(pl.col("label") != "").first(),
        pl.col("text").unique(maintain_order=True),
        pl.col("description", "classes").sort_by(pl.col("description").str.len_chars(), descending=True).first(),
        pl.col("popularity").max(),
    )
    for qid, label, names, description, classes, popularity in merged.iter_rows():
        yield Entity(qid, label or names[0], tuple(names), description, tuple(classes.split()), popularity)


def _read(path: Path) -> pl.DataFrame:
    if path.suffix not in READERS:
        raise InputError(f"{path}: no table; {did_you_mean(path.suffix, READERS)}")
    if not path.is_file():
        raise InputError(f"{path} does not exist: check the path")
    try:
        if separator := READERS[path.suffix]:
            quote = '"' if separator == "," else None
            return pl.read_csv(path, separator=separator, quote_char=quote, infer_schema=False)
        return pl.read_json(path) if path.suffix == ".json" else pl.read_ndjson(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(f"{path} cannot be read as a table: {str(error).splitlines()[0]}") from None


def example_entities(examples: Iterable[Example], relations: Mapping[str, Relation]) -> Iterator[Entity]:
    """The objects and subjects of labelled rows that have QIDs, classed by their relation's types."""
    for example in examples:
        relation = relations[example.query.relation]
        if example.query.subject_id:
            yield Entity(example.query.subject_id, example.query.subject, classes=(relation.subject_type.qid,))
        for gold in example.objects:
            names = tuple(filter(as_name, gold.names))
            if relation.kind == "entity" and names and gold.id and as_qid(gold.id):
                yield Entity(gold.id, names[0], names, classes=(relation.object_type.qid,))
