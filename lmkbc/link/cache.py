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

from lmkbc.errors import InputError, LmkbcError
from lmkbc.files.database import DATABASE_ERRORS, columns, is_unwritable, opened
from lmkbc.link.schema import ShapeError, T, decode

VERSION = 1
_TABLE = """CREATE TABLE IF NOT EXISTS answers (source TEXT, kind TEXT, key TEXT, answer BLOB NOT NULL,
    date TEXT NOT NULL, checksum INTEGER, PRIMARY KEY (source, kind, key)) WITHOUT ROWID"""
_GET = "SELECT CAST(answer AS BLOB), checksum FROM answers WHERE source = ? AND kind = ? AND key = ?"
_PUT = "INSERT OR REPLACE INTO answers (source, kind, key, answer, date, checksum) VALUES (?, ?, ?, ?, ?, ?)"


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
            self._db.execute("SELECT source, kind, key, answer, date, checksum FROM answers LIMIT 0")
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
                row = self._db.execute(_GET, (self._source, kind, key)).fetchone()
            if row is None:
                continue
            try:
                if row[1] != _checksum(self._source, kind, key, row[0]):
                    raise ShapeError("its checksum does not match")
                answers[key] = decode(row[0], decoder)
            except ShapeError:
                self.damaged.add((kind, key))
        return answers

    def put(self, kind: str, answers: Mapping[str, object]) -> None:
        """Store answers in one transaction, dated now, replacing older ones. LmkbcError when the disk refuses."""
        date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        rows = []
        for key, answer in answers.items():
            raw = msgspec.json.encode(answer)
            rows.append((self._source, kind, key, raw, date, _checksum(self._source, kind, key, raw)))
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
    db.execute(_TABLE)
    if "checksum" not in columns(db, "answers"):
        db.execute("ALTER TABLE answers ADD COLUMN checksum INTEGER")
        db.execute("UPDATE answers SET checksum = row_checksum(source, kind, key, answer)")


def _checksum(source: str, kind: str, key: str, answer: Any) -> int:
    """Return the CRC-32 of an answer and its key: no flipped bit passes, nor an answer under another key."""
    raw = answer if isinstance(answer, bytes) else str(answer).encode(errors="surrogatepass")
    return zlib.crc32(raw, zlib.crc32("\0".join((source, kind, key)).encode(errors="surrogatepass")))
