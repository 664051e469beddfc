"""Entities from tables (`text`, `id` and optional columns) and from labelled rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import polars as pl

from lmkbc.errors import InputError, did_you_mean
from lmkbc.files.reader import whole
from lmkbc.files.tables import separator
from lmkbc.link.builder import IndexEntity
from lmkbc.link.train_objects import mentions
from lmkbc.names import QID
from lmkbc.relation import Relation
from lmkbc.types import Example

COLUMNS = {
    "text": ("", "text"),
    "id": (rf"^{QID}$", "QID; write one like 'Q42'"),
    "label": ("", "text"),
    "description": ("", "text"),
    "classes": (rf"^\s*({QID}\s*)*$", "list of QIDs; write them parted by spaces"),
    "popularity": (r"^([0-9]{1,18})?$", "whole number"),
}
"""Column -> pattern of its values as text, and their description for messages."""
READERS = {".csv": ",", ".tsv": "\t", ".json": "", ".jsonl": "", ".ndjson": ""}


def read_table(path: Path) -> Iterator[IndexEntity]:
    """Yield entities of a CSV, TSV, JSON (list of objects) or JSONL table with one name per row.

    Required columns: text, id. Optional: label (default: the entity's first text), description, classes (QIDs separated
    by spaces), popularity (a whole number). Raises InputError for the first row with a wrong value.
    """
    frame = _read(path)
    for name in frame.columns:
        if name not in COLUMNS:
            raise InputError(f"{path}, column {name}: unknown; {did_you_mean(name, {*COLUMNS, 'popularity'})}")
    for name in ("text", "id"):
        if name not in frame.columns:
            raise InputError(f"{path} lacks the column {name!r}: an alias table needs text and id")
    frame = _typed(path, frame)
    merged = frame.group_by("id", maintain_order=True).agg(
        pl.col("label").filter(pl.col("label") != "").first(),
        pl.col("text").unique(maintain_order=True),
        pl.col("description", "classes").sort_by(pl.col("description").str.len_chars(), descending=True).first(),
        pl.col("popularity").max(),
    )
    for qid, label, names, description, classes, popularity in merged.iter_rows():
        yield IndexEntity(qid, label or names[0], tuple(names), description, tuple(classes.split()), popularity)


def _typed(path: Path, frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame with all columns; absent values become "" or 0."""
    frame = frame.with_columns(pl.lit(None).alias(name) for name in COLUMNS if name not in frame.columns)
    for name, (shape, what) in COLUMNS.items():
        if frame[name].dtype.is_nested():
            raise InputError(f"{path}, column {name}: holds lists or objects; give {what}")
        frame = frame.with_columns(pl.col(name).cast(pl.String).fill_null(""))
        wrong = frame.with_row_index("row", 1).filter(~pl.col(name).str.contains(shape))
        if wrong.height:
            row, text, value = wrong.select("row", pl.col("text").alias("name"), name).row(0)
            of = f" (for {text!r})" if name != "text" else ""
            raise InputError(f"{path}, row {row}, column {name}: {value!r}{of} is no {what}")
    return frame.with_columns(pl.col("popularity").cast(pl.Int64, strict=False).fill_null(0))


def _read(path: Path) -> pl.DataFrame:
    if path.suffix not in READERS:
        raise InputError(f"{path}: no table; {did_you_mean(path.suffix, READERS)}")
    content = whole(path)
    try:
        if sign := READERS[path.suffix]:
            sign = separator(content[:4096], ("text", "id")) if sign == "," else sign
            quote = None if sign == "\t" else '"'
            return pl.read_csv(content, separator=sign, quote_char=quote, infer_schema=False)
        return pl.read_json(content) if path.suffix == ".json" else pl.read_ndjson(content)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(f"{path} cannot be read as a table: {str(error).splitlines()[0]}") from None


def example_entities(examples: Iterable[Example], relations: Mapping[str, Relation]) -> Iterator[IndexEntity]:
    """Yield the objects and subjects with QIDs of labelled rows. Their classes are the types of their relation."""
    for mention in mentions(examples, relations):
        yield IndexEntity(mention.id, mention.name, classes=(mention.type,))
