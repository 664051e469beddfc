"""SQLite files that several processes open at once."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable
from pathlib import Path

from lmkbc.errors import InputError

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
    Only the owner can read a new file, and SQLite gives its other files the same mode.
    """
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.touch(mode=0o600)
    db = sqlite3.connect(path or ":memory:", timeout=WAIT)
    if _version(db) not in (0, version):
        raise InputError(f"{path} was written by another version of lmkbc: {advice}")
    _write_ahead(db)
    db.executescript("PRAGMA trusted_schema = OFF; PRAGMA synchronous = NORMAL;")
    if not _version(db):
        with db:
            db.execute("BEGIN IMMEDIATE")
            if not _version(db):  # else another process was faster
                for table in tables:
                    db.execute(table)
                db.execute(f"PRAGMA user_version = {version}")
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
