"""The alias index: one SQLite file of names and entities, with exact look-up and look-up within one edit.

Read-only once built (see builder.py), so that any number of processes may share it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

from rapidfuzz.distance import OSA, JaroWinkler

from lmkbc.errors import InputError
from lmkbc.link import fuzzy
from lmkbc.link.evidence import Hit
from lmkbc.link.names import key

VERSION = 1
"""Raised whenever the schema, `names.key` or the hashes change; another version is refused, never misread."""

SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE entities (id INTEGER PRIMARY KEY, label TEXT NOT NULL, description TEXT NOT NULL, classes TEXT NOT NULL,
    popularity INTEGER NOT NULL);
CREATE TABLE names (id INTEGER PRIMARY KEY, key TEXT NOT NULL, entity INTEGER NOT NULL, text TEXT NOT NULL);
CREATE TABLE thirds (hash INTEGER NOT NULL, name INTEGER NOT NULL, PRIMARY KEY (hash, name)) WITHOUT ROWID;
"""
"""names: `key` is the normalised `text`. thirds: fuzzy.filed_under of each distinct key, and the first name with it."""

_EXACT = """
SELECT names.text, entities.* FROM names JOIN entities ON entities.id = names.entity WHERE names.key = ?
"""
_NEAR = "SELECT DISTINCT names.key FROM thirds JOIN names ON names.id = thirds.name WHERE thirds.hash IN ({})"
Row = tuple[str, int, str, str, str, int]


class AliasIndex:
    """Look-ups in an index file. Not to be shared between threads."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise InputError(f"{path} does not exist: build it with 'lmkbc link build {path} --table FILE'")
        self._path = path
        self._db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        self._db.execute("PRAGMA mmap_size = 1073741824")
        self._check_version()

    def _check_version(self) -> None:
        try:
            found = dict(self._db.execute("SELECT name, value FROM meta"))
        except sqlite3.DatabaseError:
            found = {}
        version, sources = found.get("version", "none"), found.get("sources", "--table FILE")
        if version != str(VERSION):
            raise InputError(
                f"{self._path} is an index of version {version}, this program reads version {VERSION}: "
                f"rebuild it with 'lmkbc link build {self._path} {sources}'"
            )

    def close(self) -> None:
        """Release the file."""
        self._db.close()

    def exact(self, text: str) -> tuple[Hit, ...]:
        """Entities with this name under normalisation: spelt as asked first, then labels, then by popularity."""
        return _hits(self._db.execute(_EXACT, (key(text),)).fetchall(), text)

    def fuzzy(self, text: str, limit: int = 5) -> tuple[Hit, ...]:
        """Entities with a name within one edit (or swap of neighbours), nearest names first."""
        asked = key(text)
        hashes = sorted(fuzzy.looked_up(asked))
        near = self._db.execute(_NEAR.format(",".join("?" * len(hashes))), hashes)
        close = [name for (name,) in near if OSA.distance(asked, name, score_cutoff=1) <= 1]
        close.sort(key=lambda name: (-JaroWinkler.similarity(asked, name), name))
        found: dict[str, Hit] = {}
        for name in close:
            for hit in _hits(self._db.execute(_EXACT, (name,)).fetchall(), text):
                found.setdefault(hit.id, hit)
            if len(found) >= limit:
                break
        return tuple(found.values())[:limit]

    def entities(self, ids: Sequence[str], /) -> dict[str, Hit | None]:
        """What the ids stand for; ids that the index does not hold are absent."""
        found: dict[str, Hit | None] = {}
        for qid in ids:
            row = self._db.execute("SELECT '', * FROM entities WHERE id = ?", (int(qid[1:]),)).fetchone()
            if row:
                found[qid] = _hit(row)
        return found

    def labels(self, ids: Iterable[str]) -> dict[str, str]:
        """Label of each id that the index holds."""
        return {qid: hit.label for qid, hit in self.entities(list(ids)).items() if hit}


def _hits(rows: list[Row], text: str) -> tuple[Hit, ...]:
    """One hit per entity: by its best spelling, then its popularity."""
    rows.sort(key=lambda row: (row[0] != text, row[0] != row[2], -row[5], row[1]))
    best: dict[int, Row] = {}
    for row in rows:
        best.setdefault(row[1], row)
    return tuple(_hit(row) for row in best.values())


def _hit(row: Row) -> Hit:
    name, id_, label, description, classes, popularity = row
    return Hit(f"Q{id_}", label, description, tuple(classes.split()), popularity, name)
