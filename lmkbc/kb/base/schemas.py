"""Columns of the tables of a knowledge base, by name and type, and rows as data frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import polars as pl

from lmkbc.files.tables import AT_ONCE

SCHEMA_VERSION = "1"
"""Version of the schema, raised when a column changes its meaning. A new column that may be null does not raise it."""
SUBJECT: dict[str, Any] = {"subject_row": pl.Int64, "subject": pl.String, "subject_id": pl.String}
ABOUT: dict[str, Any] = {**SUBJECT, "relation": pl.String, "property": pl.String}
QUOTE: dict[str, Any] = {
    **dict.fromkeys(("quote", "source", "quote_file"), pl.String),
    **dict.fromkeys(("quote_start", "quote_end"), pl.Int64),
}
"""Columns of a fact's quote from a document: its text, the document's address, its file, and the characters there."""
FACTS: dict[str, Any] = {
    **ABOUT,
    "object": pl.String,
    "object_id": pl.String,
    "literal": pl.String,
    "unit": pl.String,
    "confidence": pl.Float64,
    "calibrated": pl.Boolean,
    "sources": pl.List(pl.String),
    "model": pl.String,
    "run": pl.String,
    "precision": pl.String,
    "subject_entity": pl.Int64,
    "object_entity": pl.Int64,
    "more_sources": pl.List(pl.String),
    "object_label": pl.String,
    "stated_by": pl.List(pl.String),
    **QUOTE,
}
SETTLED = ("subject_entity", "object_entity", "more_sources", "object_label")
"""Columns of facts that stay null until all facts are there."""
NOTHING: dict[str, Any] = {**ABOUT, "reason": pl.String, "confidence": pl.Float64, "model": pl.String, "run": pl.String}
MISSING: dict[str, Any] = {**ABOUT, "reason": pl.String, "run": pl.String}
REPLIES: dict[str, Any] = {**ABOUT, "model": pl.String, "completions": pl.List(pl.String)}
LEAST = 0.7
"""Least probability of a fact, if no other is given.

It is the lowest one at which four of five facts are right on train, out of fold. This holds in each edition,
and for subjects of another edition (docs/experiments.md).
"""


SUMS: dict[str, Any] = {"relation": pl.String, "tokens": pl.Int64, "below_least": pl.Int64}
"""Columns of what is summed by relation: tokens, and objects that were kept and are less sure than a fact must be."""
SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "facts": FACTS,
    "nothing": NOTHING,
    "missing": MISSING,
    "replies": REPLIES,
}
"""Table -> column -> type."""


def frames(rows: Iterable[Sequence[Any]], schema: Mapping[str, Any]) -> Iterator[pl.DataFrame]:
    """Yield rows as data frames of at most `AT_ONCE` rows, at least one frame."""
    left, is_first = iter(rows), True
    while (some := [*islice(left, AT_ONCE)]) or is_first:
        yield pl.DataFrame(some, schema, orient="row")
        is_first = False
