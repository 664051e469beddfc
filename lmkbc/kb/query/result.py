"""Answer of a query over a knowledge base."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from lmkbc.files.atomic import write_bytes
from lmkbc.files.tables import comma_separated

Cell = str | int | float | bool | None
DIGITS = ".15g"
"""Format of a number that is not whole, without noise of floats and zeros at its end."""


@dataclass(frozen=True)
class QueryResult:
    """Answer of a query. columns: the variables; "answer" for ASK; subject, predicate, object for triples.

    rows: a number, or a text without quotes, datatype and language; None if the variable has no value.
    relations: the base's relations, each with its predicate in a query. unsure: number of facts that `least` left out;
    0 for a large base whose triples were on disk already.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    relations: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    unsure: int = field(default=0, repr=False, compare=False)

    def frame(self) -> pl.DataFrame:
        """Return the answer as a data frame. A column that holds numbers and texts is one of texts."""
        columns: dict[str, list[Any]] = {name: [row[at] for row in self.rows] for at, name in enumerate(self.columns)}
        for name, values in columns.items():
            if any(isinstance(value, str) for value in values):
                columns[name] = [None if value is None else str(value) for value in values]
        return pl.DataFrame(columns, strict=False)

    def write(self, path: Path) -> None:
        """Write the answer as CSV to a new file. LmkbcError if the disk refuses."""
        rows = [[format(cell, DIGITS) if isinstance(cell, float) else cell for cell in row] for row in self.rows]
        write_bytes(path, comma_separated(QueryResult(self.columns, rows).frame()).encode(), new=True)
