"""SQLite: files that several processes open at once, and values by query in a temporary file."""

from __future__ import annotations

import sqlite3
import time
import weakref
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from lmkbc.errors import InputError, LmkbcError
from lmkbc.types import Pair

DATABASE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""Errors of a damaged file. SQLite's message may quote bytes that are not text, which Python then fails to decode."""

WAIT = 60.0
"""Seconds to wait for another process that writes or creates the file."""


def is_unwritable(error: Exception) -> bool:
    """Return whether the error is about permissions of the file or folder, and not about its content."""
    code: int = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return isinstance(error, OSError) or code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)


def opened(path: Path | None, version: int, tables: Iterable[str], advice: str) -> sqlite3.Connection:
    """Connect to a file, or to memory if there is no path, and create its tables if it is new.

    tables: SQL that creates each table; a table of another program stays, and is a sqlite3.Error. advice: end of the
    InputError for a file of another version. OSError and DATABASE_ERRORS are passed on.

    The journal is written ahead (WAL). So a killed process loses nothing, and a power cut at most the last moments.
    Only the owner can read a new file, and SQLite gives its other files the same mode. Threads may use it in turn.
    """
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.touch(mode=0o600)
    db = sqlite3.connect(path or ":memory:", timeout=WAIT, check_same_thread=False)
    if _version(db) not in (0, version):
        raise InputError(f"{path} was written by another version of lmkbc: {advice}")
    db.executescript(f"PRAGMA trusted_schema = OFF; PRAGMA synchronous = {'NORMAL' if _version(db) else 'OFF'};")
    _write_ahead(db)
    if not _version(db):
        with db:
            db.execute("BEGIN IMMEDIATE")
            if not _version(db):  # else another process was faster
                for table in tables:
                    db.execute(table)
                db.execute(f"PRAGMA user_version = {version}")
    db.execute("PRAGMA synchronous = NORMAL")
    return db


def _write_ahead(db: sqlite3.Connection) -> None:
    """Switch the journal. SQLite itself does not wait for another process that switches it at the same moment."""
    end = time.monotonic() + WAIT
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
        time.sleep(0.02)


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


class ByQuery:
    """Values by query and kind, in a temporary file; a query may have several of a kind, which stay in order.

    SQLite keeps a database without a name in a file that no one else sees, and holds a few pages of it in memory. All
    values are added before the first one is read.
    """

    def __init__(self) -> None:
        self._database, self._is_indexed = sqlite3.connect("", check_same_thread=False), False
        self.close = weakref.finalize(self, self._database.close)
        self._database.executescript("PRAGMA journal_mode = OFF; PRAGMA temp_store = FILE;")
        self._database.execute("CREATE TABLE held (subject, relation, kind, value)")

    def add(self, pair: Pair, kind: str, value: Any) -> None:
        """Store a value that msgspec can encode. Raise LmkbcError if the disk is full."""
        try:
            self._database.execute("INSERT INTO held VALUES (?, ?, ?, ?)", (*pair, kind, msgspec.msgpack.encode(value)))
        except sqlite3.OperationalError as error:
            raise LmkbcError(
                f"rows cannot be kept in a temporary file: {error}; make room, or name another place in TMPDIR"
            ) from error

    def pairs(self) -> set[Pair]:
        """Return subject, which is the kind of value, and relation of all values."""
        return set(self._database.execute("SELECT DISTINCT kind, relation FROM held"))

    def of(self, pair: Pair) -> Mapping[str, Sequence[bytes]]:
        """Return the encoded values of a query, by kind."""
        if not self._is_indexed:
            self._database.execute("CREATE INDEX query ON held (subject, relation)")
            self._is_indexed = True
        made = defaultdict[str, list[bytes]](list)
        wanted = "SELECT kind, value FROM held WHERE subject = ? AND relation = ? ORDER BY rowid"
        for kind, value in self._database.execute(wanted, pair):
            made[kind].append(value)
        return made
