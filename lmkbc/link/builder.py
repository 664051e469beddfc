"""Writer of the alias index: entities are staged in a file that survives a kill, then written in sorted order.

SQLite sorts all rows at the end, in constant memory. So the index depends on the entities alone, not on their order or
on interruptions of the build.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from lmkbc.errors import InputError, LmkbcError
from lmkbc.files.database import DATABASE_ERRORS
from lmkbc.link.index import SCHEMA, VERSION
from lmkbc.link.wordings import filed_under, key

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
        rows, names = [], []
        for entity in entities:
            number = int(entity.id[1:])
            rows.append((number, entity.label, entity.description, " ".join(entity.classes), entity.popularity))
            for name in dict.fromkeys((entity.label, *entity.names)):
                if name.strip():
                    names.append((key(name), number, name))  # noqa: PERF401 (two lists grow together)
        with self._errors(), self._db:
            self._db.executemany(_MERGE, rows)
            self._db.executemany("INSERT INTO names VALUES (?, ?, ?)", names)
            self._db.execute("INSERT OR REPLACE INTO progress VALUES (?, ?, ?, ?)", (source, *progress))
            self._db.executemany("INSERT INTO broken VALUES (?, ?, ?)", [(source, *row) for row in broken])

    def broken(self) -> list[tuple[str, int, str]]:
        """Return source, line and reason of every line that was skipped."""
        with self._errors():
            return self._db.execute("SELECT source, line, reason FROM broken ORDER BY source, line").fetchall()

    def finish(self, sources: str = "") -> tuple[int, int]:
        """Write the index, remove the staging file, and return the numbers of entities and names.

        sources: options of the command that rebuilds the index.
        """
        self._db.close()
        fresh = self._path.with_name(self._path.name + ".fresh")
        with self._errors():
            fresh.unlink(missing_ok=True)
            counts = self._write(fresh, sources)
            with fresh.open("rb") as file:
                os.fsync(file.fileno())
            os.replace(fresh, self._path)
            self._partial.unlink()
        return counts

    def _write(self, fresh: Path, sources: str) -> tuple[int, int]:
        with closing(sqlite3.connect(fresh)) as db:
            db.create_function("third", 2, _third, deterministic=True)
            db.executescript(
                "PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF; PRAGMA cache_size = -16384;" + SCHEMA
            )
            db.execute("ATTACH ? AS staged", (str(self._partial),))
            db.executescript(f"BEGIN; {_WRITE_OUT} COMMIT;")
            with db:
                db.executemany("INSERT INTO meta VALUES (?, ?)", [("version", str(VERSION)), ("sources", sources)])
            (entities, names) = db.execute(
                "SELECT (SELECT count(*) FROM entities), (SELECT count(*) FROM names)"
            ).fetchone()
        return entities, names


def _third(name: str, third: int) -> int:
    return filed_under(name)[third]
