"""Values by query, on disk: recorded answers and the rows of a page are more than memory holds, and in any order."""

from __future__ import annotations

import sqlite3
import weakref
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lmkbc.errors import LmkbcError
from lmkbc.scoring.table import Pair


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
