"""Answers of the search API, kept for good with their date: one SQLite file, no-hits included.

An answer belongs to the API and the settings that gave it, so mirrors and languages do not mix.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from lmkbc.errors import InputError

SCHEMA = """
CREATE TABLE IF NOT EXISTS answers (source TEXT, kind TEXT, key TEXT, answer BLOB NOT NULL, date TEXT NOT NULL,
    PRIMARY KEY (source, kind, key)) WITHOUT ROWID;
"""


class Cache:
    """What was asked and answered. source: names the API and its settings. Each answer is one JSON value."""

    def __init__(self, path: Path, source: str) -> None:
        self._source = source
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=30)
            self._db.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;" + SCHEMA)
        except (OSError, sqlite3.DatabaseError) as error:
            raise InputError(
                f"{path} cannot serve as the linker's cache ({error}): remove it or name another"
            ) from None

    def get(self, kind: str, keys: Iterable[str]) -> dict[str, bytes]:
        """The stored answers among `keys`, as JSON."""
        sql = "SELECT answer FROM answers WHERE source = ? AND kind = ? AND key = ?"
        rows = {key: self._db.execute(sql, (self._source, kind, key)).fetchone() for key in keys}
        return {key: row[0] for key, row in rows.items() if row}

    def put(self, kind: str, answers: Mapping[str, object]) -> None:
        """Store answers in one transaction, dated now, replacing older ones."""
        date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        rows = [(self._source, kind, key, msgspec.json.encode(answer), date) for key, answer in answers.items()]
        with self._db:
            self._db.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?)", rows)

    def dates(self, kind: str) -> dict[str, str]:
        """When each stored answer of a kind was given (UTC)."""
        sql = "SELECT key, date FROM answers WHERE source = ? AND kind = ?"
        return dict(self._db.execute(sql, (self._source, kind)))

    def close(self) -> None:
        """Release the file."""
        self._db.close()
