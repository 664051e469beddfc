"""SQLite files that several processes open at once. One of them upgrades an old file, and rows have checksums."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lmkbc.errors import InputError

DATABASE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""Errors of a damaged file. SQLite's message may quote bytes that are not text, which Python then fails to decode."""

WAIT = 60.0
"""Seconds to wait for another process that writes or upgrades the file."""


def is_unwritable(error: Exception) -> bool:
    """Return whether the error is about permissions of the file or folder, and not about its content."""
    code: int = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return isinstance(error, OSError) or code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)


def is_damage(error: Exception) -> bool:
    """Return whether SQLite reports that the file is damaged."""
    code: int = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return isinstance(error, UnicodeDecodeError) or code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def row_checksum(*fields: bytes | None) -> str:
    """Return the SHA-256 of a row's fields, each with its length.

    For a single field, return the SHA-256 of its bytes.
    """
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
    """Connect to a file, or to memory if there is no path.

    Texts are returned as bytes, since damaged ones may not be UTF-8.

    upgrade: function that creates the tables, or changes those of an older version. It runs in one transaction, for
    which other processes wait. checksum: implementation of the SQL function `row_checksum`. advice: end of the
    InputError for a file of a newer version. OSError and DATABASE_ERRORS are passed on.

    The journal is written ahead (WAL). So a killed process loses nothing, and a power cut at most the last moments.
    Only the owner can read a new file, and SQLite gives its other files the same mode.
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
