"""Data of a run by query, from several files, on disk: a page needs them by query, and files are in any order."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

import msgspec

from lmkbc.errors import LmkbcError
from lmkbc.scoring.table import Pair


class QueryStore:
    """Values by query and kind; a query may have several of a kind, which stay in order.

    SQLite keeps a database without a name in a temporary file, and holds a few pages of it in memory.
    """

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        database.executescript("PRAGMA journal_mode = OFF; PRAGMA temp_store = FILE;")
        database.execute("CREATE TABLE held (subject, relation, kind, value)")

    def add(self, pair: Pair, kind: str, value: Any) -> None:
        """Store a value that msgspec can encode."""
        self._database.execute("INSERT INTO held VALUES (?, ?, ?, ?)", (*pair, kind, msgspec.msgpack.encode(value)))

    def sort(self) -> None:
        """Make values ready to be read. Call it once all are stored."""
        self._database.execute("CREATE INDEX query ON held (subject, relation)")

    def of(self, pair: Pair) -> Mapping[str, Sequence[bytes]]:
        """Return the encoded values of a query, by kind."""
        made = defaultdict[str, list[bytes]](list)
        wanted = "SELECT kind, value FROM held WHERE subject = ? AND relation = ? ORDER BY rowid"
        for kind, value in self._database.execute(wanted, pair):
            made[kind].append(value)
        return made


@contextmanager
def query_store() -> Iterator[QueryStore]:
    """Yield an empty store, which ends with the block. LmkbcError if the disk is full."""
    try:
        with closing(sqlite3.connect("")) as database:
            yield QueryStore(database)
    except sqlite3.OperationalError as error:
        raise LmkbcError(
            f"what a page is made of cannot be kept in a temporary file: {error}; make room, or name another place in "
            "TMPDIR"
        ) from error
