"""The alias index: one SQLite file of names and entities, with exact look-up and look-up within one edit.

The file is read-only once it is built (see builder.py), so any number of processes may share it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rapidfuzz.distance import OSA, JaroWinkler

from lmkbc.errors import InputError
from lmkbc.files.database import DATABASE_ERRORS
from lmkbc.link.evidence import Hit
from lmkbc.link.wordings import key, looked_up
from lmkbc.names import as_qid

VERSION = 1
"""Version of the file, raised when the schema, `names.key` or the hashes change. Other versions are refused."""

SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE entities (id INTEGER PRIMARY KEY, label TEXT NOT NULL, description TEXT NOT NULL, classes TEXT NOT NULL,
    popularity INTEGER NOT NULL);
CREATE TABLE names (id INTEGER PRIMARY KEY, key TEXT NOT NULL, entity INTEGER NOT NULL, text TEXT NOT NULL);
CREATE TABLE thirds (hash INTEGER NOT NULL, name INTEGER NOT NULL, PRIMARY KEY (hash, name)) WITHOUT ROWID;
"""
"""names: `key` is the normalised `text`. thirds: names.filed_under of each distinct key, and the first name with it."""

_EXACT = """
SELECT names.text, entities.* FROM names JOIN entities ON entities.id = names.entity WHERE names.key = ?
"""
_NEAR = "SELECT DISTINCT names.key FROM thirds JOIN names ON names.id = thirds.name WHERE thirds.hash IN ({})"
Row = tuple[str, int, str, str, str, int]


class AliasIndex:
    """Look-ups in an index file. An instance must not be shared between threads."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise InputError(f"{path} does not exist: build it with 'lmkbc link build {path} --table FILE'")
        self._path = path
        self._db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        self._check()
        self._db.execute("PRAGMA mmap_size = 1073741824")

    def _check(self) -> None:
        try:
            meta = dict(self._db.execute("SELECT name, value FROM meta"))
        except DATABASE_ERRORS:
            meta = {}
        version, sources = meta.get("version", "none"), meta.get("sources", "--table FILE")
        rebuild = f"rebuild it with 'lmkbc link build {self._path} {sources}'"
        if version != str(VERSION):
            raise InputError(
                f"{self._path} is an index of version {version}, this program reads version {VERSION}: {rebuild}"
            )

    def _rows(self, sql: str, values: Sequence[object]) -> list[Any]:
        """Return the rows of an SQL query. InputError for a damaged file."""
        try:
            return self._db.execute(sql, values).fetchall()
        except DATABASE_ERRORS as error:
            raise InputError(f"{self._path} is damaged ({error}): remove it and build it anew") from None

    def close(self) -> None:
        """Release the file."""
        self._db.close()

    def exact(self, text: str) -> tuple[Hit, ...]:
        """Return entities with this normalised name: exact spelling first, then labels, then by popularity."""
        return self._named(key(text), text)

    def _named(self, name: str, text: str) -> tuple[Hit, ...]:
        """Return one hit per entity with this key, ordered by its best spelling, then by popularity."""
        rows: list[Row] = self._rows(_EXACT, (name,))
        rows.sort(key=lambda row: (row[0] != text, row[0] != row[2], -row[5], row[1]))
        best: dict[int, Row] = {}
        for row in rows:
            best.setdefault(row[1], row)
        return tuple(_hit(row) for row in best.values())

    def fuzzy(self, text: str, limit: int = 5) -> tuple[Hit, ...]:
        """Return entities with a name within one edit (or swap of neighbours), the nearest names first."""
        wanted = key(text)
        hashes = sorted(looked_up(wanted))
        near = self._rows(_NEAR.format(",".join("?" * len(hashes))), hashes)
        close = [name for (name,) in near if OSA.distance(wanted, name, score_cutoff=1) <= 1]
        close.sort(key=lambda name: (-JaroWinkler.similarity(wanted, name), name))
        hits: dict[str, Hit] = {}
        for name in close:
            for hit in self._named(name, text):
                hits.setdefault(hit.id, hit)
            if len(hits) >= limit:
                break
        return tuple(hits.values())[:limit]

    def entities(self, ids: Sequence[str], /) -> dict[str, Hit | None]:
        """Return the entity of each id. Ids that the index lacks are absent."""
        of_id = "SELECT '', * FROM entities WHERE id = ?"
        known = [qid for qid in ids if as_qid(qid) == qid]
        return {qid: _hit(row) for qid in known for row in self._rows(of_id, (int(qid[1:]),))}

    def labels(self, ids: Iterable[str]) -> dict[str, str]:
        """Return the label of each id that the index has."""
        return {qid: hit.label for qid, hit in self.entities(list(ids)).items() if hit}


def _hit(row: Row) -> Hit:
    name, id_, label, description, classes, popularity = row
    return Hit(f"Q{id_}", label, description, tuple(classes.split()), popularity, name)
