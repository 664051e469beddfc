"""The subjects of a knowledge base: a file of names, QIDs and classes, checked completely before any model is asked."""

from __future__ import annotations

import logging
import unicodedata
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import polars as pl

from lmkbc.errors import InputError
from lmkbc.files.checksum import file_sha256
from lmkbc.files.tables import InputTable, TableRow
from lmkbc.names import as_qid, shown

COLUMNS = ("name", "id", "class")
SCHEMA = dict.fromkeys(COLUMNS, pl.String)
AT_ONCE = 250_000
"""Rows that are Python values at a time; progress is logged after each such chunk."""
log = logging.getLogger(__name__)


class Subject(NamedTuple):
    """Subject of a knowledge base. row: its index, from 0. class_: a QID or label, or ""."""

    row: int
    name: str
    id: str | None = None
    class_: str = ""


class Subjects:
    """Subjects, each once, stored as columns. frame: has the columns of `SCHEMA`. first: row of the first subject.

    classes: class -> number of subjects.
    """

    def __init__(self, frame: pl.DataFrame, first: int = 0) -> None:
        self._frame, self._first = frame, first
        self.classes = Counter(dict(frame.group_by("class", maintain_order=True).len().iter_rows()))

    def __len__(self) -> int:
        return len(self._frame)

    def __iter__(self) -> Iterator[Subject]:
        for row, values in enumerate(self._frame.iter_rows(), self._first):
            yield Subject(row, *values)


class SubjectFile(Subjects):
    """The subjects of a file, in its order. InputError names the line of a wrong value.

    Rows with the same QID are the same subject, under any name. Rows with the same name and different QIDs are
    different subjects. A name without a QID is the subject with this name, with or without a QID. limit: number of
    subjects to keep, from the first.

    counts: numbers of rows, merged rows and namesakes. remarks: messages for the user.
    """

    def __init__(self, path: Path, limit: int | None = None) -> None:
        table = InputTable(path, COLUMNS, 1)
        self.sha256 = file_sha256(path)
        rows = pl.concat([pl.DataFrame(schema=SCHEMA), *_checked(table)]).with_row_index("row")
        linked = rows.filter(pl.col("id").is_not_null()).with_columns(
            again=~pl.col("id").is_first_distinct(),
            other=pl.col("name") != pl.col("name").first().over("id"),
            namesake=pl.col("id") != pl.col("id").first().over("name"),
        )
        bare = rows.filter(pl.col("id").is_null()).with_columns(
            again=~pl.col("name").is_first_distinct() | pl.col("name").is_in(linked["name"].implode())
        )
        kept = pl.concat([part.filter(~pl.col("again")).select(rows.columns) for part in (linked, bare)]).sort("row")
        if not len(kept):
            raise InputError(f"{path} names no subject: it needs a column 'name', and a row for each")
        super().__init__(kept.drop("row").head(len(kept) if limit is None else limit))
        others = linked.filter(pl.col("again") & pl.col("other"))
        namesakes = linked.filter(~pl.col("again") & pl.col("namesake"))
        repeated = len(bare.filter("again")) + len(linked.filter("again")) - len(others)
        self.counts = {
            "rows": len(rows),
            "subjects": len(self),
            "repeated": repeated,
            "other_names": len(others),
            "namesakes": len(namesakes),
        }
        self.remarks: list[str] = []
        if repeated:
            self.remarks.append(f"{path}: {repeated} rows repeat a subject and are left out")
        for row, _, qid, *_ in others.head(1).iter_rows():
            self.remarks.append(
                f"{path}: {len(others)} rows give a QID again under another name, first {qid} at {_place(table, row)}: "
                "the first name is asked about"
            )
        for row, name, *_ in namesakes.head(1).iter_rows():
            self.remarks.append(
                f"{path}: {len(namesakes)} names have another QID too, first {name!r} at {_place(table, row)}: these "
                "are subjects of their own"
            )


def _checked(table: InputTable) -> Iterator[pl.DataFrame]:
    """Yield the rows of a file in chunks."""
    rows, done = table.rows(), 0
    while some := [_subject(row) for row in islice(rows, AT_ONCE)]:
        yield pl.DataFrame(some, schema=SCHEMA, orient="row")
        done += len(some)
        if len(some) == AT_ONCE:
            log.info("%s: %s rows checked", table.path, f"{done:,}")


def _subject(row: TableRow) -> tuple[str, str | None, str]:
    """Return name, QID and class of a row. InputError for a blank name or an invalid id."""
    name, given, class_ = row.values
    if not (name and ("a" <= name[0].lower() <= "z" or shown(name))):
        raise InputError(f"{row.place}, field name: empty; name the subject")
    qid = as_qid(given) if given and given.strip() else None
    if given and given.strip() and qid is None:
        raise InputError(f"{row.place}, field id: {given!r} is no QID; write one like Q42, or leave it empty")
    return unicodedata.normalize("NFC", name.strip()), qid, (class_ or "").strip()


def _place(table: InputTable, row: int) -> str:
    """Return the place of a row, for messages."""
    return next(islice(table.rows(), row, None)).place
