"""What SQLite says of a file that it cannot read or write."""

from __future__ import annotations

import sqlite3

DATABASE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""To be caught together: where a file is damaged, SQLite's sentence may quote bytes that are no text, and Python's
binding then fails to decode the sentence instead of raising it."""


def is_unwritable(error: Exception) -> bool:
    """Return whether it is the folder or the file's mode that is in the way, and not what the file holds."""
    code: int = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return isinstance(error, OSError) or code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)


def is_damage(error: Exception) -> bool:
    """Whether SQLite says that the file itself is broken."""
    code: int = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return isinstance(error, UnicodeDecodeError) or code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
