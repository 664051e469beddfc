"""The alias index: one SQLite file of names and entities, with exact look-up and look-up within one edit.

The file is read-only once it is built, so any number of processes may share it. Entities are staged in a file that
survives a kill, then written in sorted order. SQLite sorts all rows at the end, in constant memory. So the index
depends on the entities alone, not on their order or on interruptions of the build.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from rapidfuzz.distance import OSA, JaroWinkler

from lmkbc.errors import InputError, LmkbcError
from lmkbc.files.database import DATABASE_ERRORS
from lmkbc.link.hits import Hit
from lmkbc.link.wordings import filed_under, looked_up
from lmkbc.names import as_qid, name_key, spelling

VERSION = 2
"""Version of the file, raised when the schema, `names.name_key` or the hashes change. Other versions are refused."""

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
        try:
            meta = dict(self._db.execute("SELECT name, value FROM meta"))
        except DATABASE_ERRORS:
            meta = {}
        version = meta.get("version", "none")
        if version != str(VERSION):
            raise InputError(
                f"{self._path} is an index of version {version}, this program reads version {VERSION}: build it anew "
                "with 'lmkbc link build'"
            )
        self._db.execute("PRAGMA mmap_size = 1073741824")

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
        """Return entities with this normalised name: exact spelling first, then case aside, labels, popularity."""
        return self._named(name_key(text), text)

    def _named(self, name: str, text: str) -> tuple[Hit, ...]:
        """Return one hit per entity with this key, ordered by its best spelling, then by popularity."""
        rows: list[Row] = self._rows(_EXACT, (name,))
        spelt = spelling(text)
        rows.sort(key=lambda row: (row[0] != text, spelling(row[0]) != spelt, row[0] != row[2], -row[5], row[1]))
        best: dict[int, Row] = {}
        for row in rows:
            best.setdefault(row[1], row)
        return tuple(_hit(row) for row in best.values())

    def fuzzy(self, text: str, limit: int = 5) -> tuple[Hit, ...]:
        """Return entities with a name within one edit (or swap of neighbours), the nearest names first."""
        wanted = name_key(text)
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
        valid = [qid for qid in ids if as_qid(qid) == qid]
        return {qid: _hit(row) for qid in valid for row in self._rows(of_id, (int(qid[1:]),))}

    def labels(self, ids: Iterable[str]) -> dict[str, str]:
        """Return the label of each id that the index has."""
        return {qid: hit.label for qid, hit in self.entities(list(ids)).items() if hit}


def _hit(row: Row) -> Hit:
    name, id_, label, description, classes, popularity = row
    return Hit(f"Q{id_}", label, description, tuple(classes.split()), popularity, name)


_LOG = logging.getLogger(__name__)
PARTIAL = ".partial"
"""Suffix of the staging file that stands beside the index during a build."""
SQLITE = b"SQLite format 3"
"""First bytes of a SQLite file."""
STAGING = """
CREATE TABLE IF NOT EXISTS entities (id INTEGER PRIMARY KEY, label TEXT NOT NULL, description TEXT NOT NULL,
    classes TEXT NOT NULL, popularity INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS names (key TEXT NOT NULL, entity INTEGER NOT NULL, text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS progress (source TEXT PRIMARY KEY, offset INTEGER, lines INTEGER, done INTEGER);
CREATE TABLE IF NOT EXISTS broken (source TEXT, line INTEGER, reason TEXT, PRIMARY KEY (source, line));
CREATE TABLE IF NOT EXISTS inputs (fingerprint TEXT);
"""
_MERGE = """
INSERT INTO entities VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET
    label = CASE WHEN label = '' THEN excluded.label ELSE label END,
    description = CASE WHEN description = '' THEN excluded.description ELSE description END,
    classes = CASE WHEN classes = '' THEN excluded.classes ELSE classes END,
    popularity = max(popularity, excluded.popularity)
"""
_WRITE_OUT = """
INSERT INTO entities SELECT * FROM staged.entities ORDER BY id;
INSERT INTO names (key, entity, text) SELECT DISTINCT key, entity, text FROM staged.names ORDER BY 1, 2, 3;
CREATE INDEX names_by_key ON names (key, entity, text);
INSERT OR IGNORE INTO thirds
    WITH distinct_keys AS (SELECT min(id) AS id, key FROM names GROUP BY key)
    SELECT third(key, 0), id FROM distinct_keys UNION ALL SELECT third(key, 1), id FROM distinct_keys
    UNION ALL SELECT third(key, 2), id FROM distinct_keys ORDER BY 1, 2;
"""


class IndexEntity(NamedTuple):
    """An entity to index: its QID, label, all names, description, P31 classes and number of sitelinks."""

    id: str
    label: str
    names: tuple[str, ...] = ()
    description: str = ""
    classes: tuple[str, ...] = ()
    popularity: int = 0


class SourceProgress(NamedTuple):
    """Progress in a source: bytes and lines read so far, and whether its end was reached."""

    offset: int = 0
    lines: int = 0
    done: bool = True


class IndexBuilder:
    """Collects entities for an index at `path`. A build that was killed resumes where it last saved.

    fingerprint: text that identifies all inputs and settings. The staging file of a build with other inputs is deleted.
    """

    def __init__(self, path: Path, fingerprint: str = "") -> None:
        self._path = path
        self._partial = path.with_name(path.name + PARTIAL)
        fingerprint = f"{VERSION}\n{fingerprint}"
        with self._errors():
            if not self._resumes(fingerprint):
                self._partial.unlink()
                self._open()
                with self._db:
                    self._db.execute("INSERT INTO inputs VALUES (?)", (fingerprint,))

    def _resumes(self, fingerprint: str) -> bool:
        """Open the staging file, and return whether it belongs to a build with the same inputs."""
        try:
            self._open()
            if self._db.execute("SELECT fingerprint FROM inputs").fetchall() == [(fingerprint,)]:
                return True
        except sqlite3.OperationalError:  # another build holds the lock, or the folder is not writable
            raise
        except DATABASE_ERRORS as error:
            _LOG.warning("%s is damaged (%s): the build starts over", self._partial, error)
        self._db.close()
        return False

    def _open(self) -> None:
        self._db = sqlite3.connect(self._partial)
        self._db.execute("PRAGMA locking_mode = EXCLUSIVE")  # two builds of one index would undo each other's work
        self._db.execute("PRAGMA synchronous = OFF")  # survives a killed process, which is all that resuming needs
        self._db.executescript(f"BEGIN EXCLUSIVE; {STAGING} COMMIT;")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn errors of SQLite and of the disk into a message of one sentence."""
        try:
            yield
        except (*DATABASE_ERRORS, OSError) as error:
            if "locked" in str(error):
                raise InputError(f"{self._path} is being built already: wait for that, or name another place") from None
            raise LmkbcError(
                f"{self._path} cannot be built ({error}): make room where the disk is full, else remove "
                f"{self._partial}, and build again; an index that was there before is untouched"
            ) from None

    def close(self) -> None:
        """Close the staging file. A later build can resume it."""
        self._db.close()

    def progress(self, source: str) -> SourceProgress:
        """Return how much of a source was read so far, by this build or by one that was killed."""
        with self._errors():
            row = self._db.execute("SELECT offset, lines, done FROM progress WHERE source = ?", (source,)).fetchone()
        return SourceProgress(row[0], row[1], bool(row[2])) if row else SourceProgress(done=False)

    def add(
        self,
        entities: Iterable[IndexEntity],
        source: str,
        progress: SourceProgress = SourceProgress(),  # noqa: B008 (an immutable value)
        broken: Sequence[tuple[int, str]] = (),
    ) -> None:
        """Stage entities and save the progress of their source, in one transaction."""
        whole = [(int(entity.id[1:]), entity) for entity in entities]
        rows = [
            (number, entity.label, entity.description, " ".join(entity.classes), entity.popularity)
            for number, entity in whole
        ]
        named = ((number, name) for number, entity in whole for name in dict.fromkeys((entity.label, *entity.names)))
        names = [(name_key(name), number, name) for number, name in named if name.strip()]
        with self._errors(), self._db:
            self._db.executemany(_MERGE, rows)
            self._db.executemany("INSERT INTO names VALUES (?, ?, ?)", names)
            self._db.execute("INSERT OR REPLACE INTO progress VALUES (?, ?, ?, ?)", (source, *progress))
            self._db.executemany("INSERT INTO broken VALUES (?, ?, ?)", [(source, *row) for row in broken])

    def broken(self) -> list[tuple[str, int, str]]:
        """Return source, line and reason of every line that was skipped."""
        with self._errors():
            return self._db.execute("SELECT source, line, reason FROM broken ORDER BY source, line").fetchall()

    def finish(self) -> tuple[int, int]:
        """Write the index, remove the staging file, and return the numbers of entities and names."""
        self._db.close()
        fresh = self._path.with_name(self._path.name + ".fresh")
        with self._errors():
            fresh.unlink(missing_ok=True)
            counts = self._write(fresh)
            with fresh.open("rb") as file:
                os.fsync(file.fileno())
            os.replace(fresh, self._path)
            self._partial.unlink()
        return counts

    def _write(self, fresh: Path) -> tuple[int, int]:
        with closing(sqlite3.connect(fresh)) as db:
            db.create_function("third", 2, lambda name, third: filed_under(name)[third], deterministic=True)
            db.executescript(
                "PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF; PRAGMA cache_size = -16384;" + SCHEMA
            )
            db.execute("ATTACH ? AS staged", (str(self._partial),))
            db.executescript(f"BEGIN; {_WRITE_OUT} COMMIT;")
            with db:
                db.execute("INSERT INTO meta VALUES ('version', ?)", (str(VERSION),))
            (entities, names) = db.execute(
                "SELECT (SELECT count(*) FROM entities), (SELECT count(*) FROM names)"
            ).fetchone()
        return entities, names
