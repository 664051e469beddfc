"""Answers of the search API, kept for good with their date: one SQLite file, no-hits included.

An answer belongs to the API and the settings that gave it, so mirrors and languages do not mix. What comes out is
checked as what came in was: a row whose checksum or shape is wrong is no answer, and counted.
"""

from __future__ import annotations

import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Column, Integer, LargeBinary, MetaData, Table, Text, bindparam, cast, false, insert, select
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateTable
from sqlalchemy.sql import ClauseElement

from lmkbc.errors import InputError, LmkbcError
from lmkbc.files.database import DATABASE_ERRORS, columns, is_unwritable, opened
from lmkbc.link.schema import ShapeError, T, decode

VERSION = 1
_TABLE = Table(
    "answers",
    MetaData(),
    *(Column(name, Text, primary_key=True) for name in ("source", "kind", "key")),
    Column("answer", LargeBinary, nullable=False),
    Column("date", Text, nullable=False),
    Column("checksum", Integer),
    sqlite_with_rowid=False,
)


def _sql(statement: ClauseElement) -> str:
    return str(statement.compile(dialect=sqlite.dialect(paramstyle="named")))


_OF_KEY = [_TABLE.c[name] == bindparam(name, type_=Text()) for name in ("source", "kind", "key")]
_GET = _sql(select(cast(_TABLE.c.answer, LargeBinary), _TABLE.c.checksum).where(*_OF_KEY))
_PUT = _sql(insert(_TABLE).prefix_with("OR REPLACE"))


class Cache:
    """Keeps replies of the search API, so that none is requested twice. Each answer is one JSON value.

    source: names the API and its settings.
    damaged: kind and key of every row that was found and cannot be used. unwritable: why answers are kept in memory
    alone, where the file cannot be written.
    """

    def __init__(self, path: Path, source: str) -> None:
        self.path, self._source = path, source
        self.damaged: set[tuple[str, str]] = set()
        self.unwritable: Exception | None = None
        advice = "move the file away"
        try:
            self._db = opened(path, VERSION, _upgrade, _checksum, advice)
            self._db.execute(_sql(select(_TABLE).where(false())))  # fails for tables of another program
        except (OSError, *DATABASE_ERRORS) as error:
            if not is_unwritable(error):
                raise InputError(
                    f"{path} cannot serve as the linker's cache ({error}): move it away, and what it held is asked anew"
                ) from None
            self.unwritable = error
            self._db = opened(None, VERSION, _upgrade, _checksum, advice)

    def get(self, kind: str, keys: Iterable[str], decoder: msgspec.json.Decoder[T]) -> dict[str, T]:
        """Return the stored answers among `keys`. LmkbcError if the file is damaged beyond single rows."""
        answers: dict[str, T] = {}
        for key in keys:
            with self._errors("read"):
                row = self._db.execute(_GET, {"source": self._source, "kind": kind, "key": key}).fetchone()
            if row is None:
                continue
            try:
                if row[1] != _checksum(self._source, kind, key, row[0]):
                    raise ShapeError("its checksum does not match")
                answers[key] = decode(row[0], decoder)
            except ShapeError:
                self.damaged.add((kind, key))
        return answers

    def kept(self, kind: str, keys: Iterable[str], decoder: msgspec.json.Decoder[T]) -> dict[str, T]:
        """Read back answers that were just written, all of `keys`. LmkbcError when one is missing."""
        wanted = list(keys)
        answers = self.get(kind, wanted, decoder)
        if lost := next((key for key in wanted if key not in answers), None):
            raise LmkbcError(
                f"{self.path}, the linker's cache, does not give back what was written ({kind} {lost!r}): it is "
                "damaged; move the file away, and what it held is asked anew"
            )
        return answers

    def put(self, kind: str, answers: Mapping[str, object]) -> None:
        """Store answers in one transaction, dated now, replacing older ones. LmkbcError when the disk refuses."""
        date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        rows = []
        for key, answer in answers.items():
            raw = msgspec.json.encode(answer)
            row = {"source": self._source, "kind": kind, "key": key, "answer": raw, "date": date}
            rows.append(row | {"checksum": _checksum(self._source, kind, key, raw)})
        with self._errors("written"), self._db:
            self._db.executemany(_PUT, rows)

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except DATABASE_ERRORS as error:
            raise LmkbcError(
                f"{self.path}, the linker's cache, cannot be {what} ({error}): make room where the disk is full, else "
                f"move the file away, and what it held is asked anew"
            ) from None

    def close(self) -> None:
        """Release the file."""
        self._db.close()


def _upgrade(db: sqlite3.Connection) -> None:
    """Make the table, or give that of version 0 its checksums."""
    db.execute(_sql(CreateTable(_TABLE, if_not_exists=True)))
    if "checksum" not in columns(db, _TABLE.name):
        db.execute("ALTER TABLE answers ADD COLUMN checksum INTEGER")
        db.execute("UPDATE answers SET checksum = row_checksum(source, kind, key, answer)")


def _checksum(source: str, kind: str, key: str, answer: Any) -> int:
    """Return the CRC-32 of an answer and its key: no flipped bit passes, nor an answer under another key."""
    raw = answer if isinstance(answer, bytes) else str(answer).encode(errors="surrogatepass")
    return zlib.crc32(raw, zlib.crc32("\0".join((source, kind, key)).encode(errors="surrogatepass")))
