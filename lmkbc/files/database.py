"""SQLite files: several processes open one at once, one of them upgrades it, and rows have checksums."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lmkbc.errors import InputError

DATABASE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""To be caught together: if a file is damaged, SQLite's sentence may quote bytes that are no text, and Python's binding
then fails to decode the sentence instead of raising it."""

WAIT = 60.0
"""Seconds that a process waits for another one that writes or upgrades the file."""


def is_unwritable(error: Exception) -> bool:
    """Return whether it is the folder or the file's mode that is in the way, and not what the file holds."""
    code: int = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return isinstance(error, OSError) or code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)


def is_damage(error: Exception) -> bool:
    """Return whether SQLite says that the file itself is broken."""
    code: int = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return isinstance(error, UnicodeDecodeError) or code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def row_checksum(*fields: bytes | None) -> str:
    """Return the SHA-256 of a row's fields, each with its length; of a single field, the SHA-256 of that alone."""
    if len(fields) == 1:
        return hashlib.sha256(fields[0] or b"").hexdigest()
    return hashlib.sha256(b"".join(b"%d:%b" % (len(field or b""), field or b"") for field in fields)).hexdigest()


def opened(
    path: Path | None,
    version: int,
    upgrade: Callable[[sqlite3.Connection], None],
    checksum: Callable[..., Any],
    advice: str,
) -> sqlite3.Connection:
    """Connect to a file, or to memory if there is no path. Texts are read as bytes, since damaged ones may be no UTF-8.

    upgrade: makes or changes the tables of an older version, in one transaction; other processes wait for it.
    checksum: SQL's function `row_checksum`. The journal is written ahead (WAL): a killed process loses nothing, a power
    cut at most the last moments. A new file is readable by its owner only; SQLite gives its other files the same mode.

    InputError, which ends with the advice, for a file of a newer version; OSError and DATABASE_ERRORS as they come.
    """
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.touch(mode=0o600)
    db = sqlite3.connect(path or ":memory:", timeout=WAIT)
    db.text_factory = bytes
    db.create_function("row_checksum", -1, checksum, deterministic=True)
    if _version(db) > version:
        raise InputError(f"{path} was written by a newer lmkbc: update lmkbc, or {advice}")
    db.executescript("PRAGMA trusted_schema = OFF; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;")
    if _version(db) < version:
        with db:
            db.execute("BEGIN IMMEDIATE")
            if _version(db) < version:  # else another process was faster
                upgrade(db)
                db.execute(f"PRAGMA user_version = {version}")
    return db


def columns(db: sqlite3.Connection, table: str) -> list[str]:
    """Return the names of a table's columns."""
    return [row[1].decode() for row in db.execute(f"PRAGMA table_info({table})")]


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])
