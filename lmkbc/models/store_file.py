"""The store's file: its rows in SQLite, the seals of their rows, and the way from an older version to this one.

A row is sealed with a checksum of all that it holds (a prompt by the digest that is its key), so that damage shows.
"""

from __future__ import annotations

import hashlib
import math
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lmkbc.errors import InputError, LmkbcError
from lmkbc.files.database import DATABASE_ERRORS, is_damage
from lmkbc.models.store_rows import Row

VERSION = 2
"""2 seals each row with a checksum."""

WAIT = 60.0
"""Seconds that a process waits for another one that writes, or brings an old file up to date."""

TABLES = {
    "prompts": "digest TEXT PRIMARY KEY, prompt TEXT NOT NULL",
    "answers": "key TEXT PRIMARY KEY, model TEXT NOT NULL, call TEXT NOT NULL, prompt TEXT NOT NULL, "
    "answer TEXT NOT NULL, date TEXT NOT NULL, checksum TEXT NOT NULL DEFAULT ''",
    "notes": "key TEXT PRIMARY KEY, note TEXT NOT NULL, checksum TEXT NOT NULL DEFAULT ''",
}
SEALS = {
    "prompts": "digest IS seal(CAST(prompt AS BLOB))",
    "answers": "checksum IS seal(CAST(key AS BLOB), CAST(model AS BLOB), CAST(call AS BLOB), CAST(prompt AS BLOB), "
    "CAST(answer AS BLOB), CAST(date AS BLOB))",
    "notes": "checksum IS seal(CAST(key AS BLOB), CAST(note AS BLOB))",
}
"""By table: whether a row holds what was put into it."""
JSON = {"answers": ("call", "answer"), "notes": ("note",)}
"""By table that an old file has without checksums: the columns that must hold JSON for a row to be sealed."""


class FileRows:
    """Rows in one file, for processes of one machine.

    The journal is written ahead (WAL): a killed process loses nothing, a power cut at most the last moments.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._db = opened(path)
        except (OSError, *DATABASE_ERRORS) as error:
            raise InputError(f"{path} cannot serve as the store ({error}): name another with --store") from None

    def insert(self, prompts: Mapping[str, str], rows: Sequence[Row]) -> set[str]:
        """Commit new rows. Returns the keys that were there."""
        there = set()
        with self._writing():
            self._db.executemany("INSERT OR IGNORE INTO prompts VALUES (?, ?)", prompts.items())
            for row in rows:
                if not self._db.execute("INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?)", row).rowcount:
                    there.add(row.key)
        return there

    def answer(self, key: str) -> tuple[bytes, ...] | None:
        """What a key's row holds."""
        return self._row("SELECT model, call, prompt, answer, date, checksum FROM answers WHERE key = ?", key)

    def delete(self, key: str) -> None:
        """Forget a row."""
        with self._writing():
            self._db.execute("DELETE FROM answers WHERE key = ?", (key,))

    def note(self, key: str) -> tuple[bytes, ...] | None:
        """A note and its checksum."""
        return self._row("SELECT note, checksum FROM notes WHERE key = ?", key)

    def set_note(self, key: str, note: tuple[str, str] | None) -> None:
        """Replace or forget a note."""
        with self._writing():
            if note is None:
                self._db.execute("DELETE FROM notes WHERE key = ?", (key,))
            else:
                self._db.execute("INSERT OR REPLACE INTO notes VALUES (?, ?, ?)", (key, *note))

    def heal(self) -> Counter[str]:
        """Drop broken rows."""
        with self._writing():
            return heal(self._db)

    def summary(self) -> list[tuple[Any, ...]]:
        """Counts by model."""
        sql = """SELECT model, count(*), count(DISTINCT prompt),
            total(json_extract(answer, '$.prompt_tokens')), total(json_extract(answer, '$.completion_tokens')),
            min(date), max(date) FROM answers GROUP BY model ORDER BY model"""
        with self._reading():
            return [tuple(map(_readable, row)) for row in self._db.execute(sql)]

    def lines(self, model: str | None) -> Iterator[tuple[str, str, str | None, str, str]]:
        """All rows, in the order of keys."""
        sql = """SELECT key, call, prompts.prompt, answer, date FROM answers LEFT JOIN prompts
            ON digest = answers.prompt WHERE ? IS NULL OR model = ? ORDER BY key"""
        with self._reading():
            for key, call, prompt, answer, date in self._db.execute(sql, (model, model)):
                yield key.decode(), call.decode(), prompt and prompt.decode(), answer.decode(), date.decode()

    def prune(self, model: str | None, before: str | None) -> int:
        """Drop answers, and give their room back."""
        with self._writing():
            sql = "DELETE FROM answers WHERE (? IS NULL OR model = ?) AND (? IS NULL OR date < ?)"
            count = self._db.execute(sql, (model, model, before, before)).rowcount
            self._db.execute("DELETE FROM prompts WHERE digest NOT IN (SELECT prompt FROM answers)")
        with self._reading():
            self._db.execute("VACUUM")
        return count

    def close(self) -> None:
        """Release the file."""
        self._db.close()

    def _row(self, sql: str, key: str) -> tuple[bytes, ...] | None:
        """The row of a key, None for none. What is no text in it, as only in a damaged one, becomes empty."""
        with self._reading():
            row = self._db.execute(sql, (key,)).fetchone()
        return None if row is None else tuple(field if isinstance(field, bytes) else b"" for field in row)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except DATABASE_ERRORS as error:
            raise self._refusal(error, "read", "name another with --store") from None

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A transaction."""
        try:
            with self._db:
                yield
        except DATABASE_ERRORS as error:
            raise self._refusal(error, "written", "make room and run again to resume") from None

    def _refusal(self, error: Exception, done: str, advice: str) -> LmkbcError:
        if is_damage(error):
            advice = "it is damaged, so move it aside or name another with --store; its answers are asked for anew"
        return LmkbcError(f"{self._path} cannot be {done} ({error}): {advice}")


def _readable(value: Any) -> Any:
    """A value of a summary: text, or a whole number."""
    if isinstance(value, bytes):
        return value.decode()
    return int(value) if math.isfinite(value) else 0


def opened(path: Path) -> sqlite3.Connection:
    """A connection to a file of this version, made or brought up to date where need be. Texts are read as bytes.

    InputError for a file of a newer version; OSError and `files.database.DATABASE_ERRORS` for what can be no store.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.touch(mode=0o600)  # prompts and answers are their owner's; SQLite gives its other files the same mode
    db = sqlite3.connect(path, timeout=WAIT)
    db.text_factory = bytes  # what a damaged row holds need not be text
    db.create_function("seal", -1, seal, deterministic=True)
    version = _version(db)
    if version > VERSION:
        raise InputError(f"{path} was written by a newer lmkbc: update lmkbc, or name another with --store")
    db.executescript("PRAGMA trusted_schema = OFF; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;")
    if version < VERSION:
        _upgrade(db)
    return db


def seal(*fields: bytes | None) -> str:
    """What seals a row: SHA-256 of its fields, and of one field alone that field's own."""
    if len(fields) == 1:
        return hashlib.sha256(fields[0] or b"").hexdigest()
    return hashlib.sha256(b"".join(b"%d:%b" % (len(field or b""), field or b"") for field in fields)).hexdigest()


def heal(db: sqlite3.Connection) -> Counter[str]:
    """Drop the rows whose seal is broken. Returns how many there were, by model, or by table where they have none.

    A table that has some is written anew: its order cannot be trusted to find them.
    """
    damaged: Counter[str] = Counter()
    owners = {"answers": "CAST(model AS BLOB)", "prompts": "'prompts'", "notes": "'notes'"}
    for table, owner in owners.items():
        broken = f"SELECT {owner}, count(*) FROM {table} WHERE NOT ({SEALS[table]}) GROUP BY 1"  # noqa: S608  (our names)
        lost = {(name or b"").decode(errors="replace"): count for name, count in db.execute(broken)}
        damaged.update(lost)
        if lost:
            if not db.in_transaction:
                db.execute("BEGIN IMMEDIATE")
            db.execute(f"CREATE TABLE sound ({TABLES[table]}) WITHOUT ROWID")
            db.execute(f"INSERT OR REPLACE INTO sound SELECT * FROM {table} WHERE {SEALS[table]}")  # noqa: S608
            db.execute(f"DROP TABLE {table}")
            db.execute(f"ALTER TABLE sound RENAME TO {table}")
    return damaged


def _upgrade(db: sqlite3.Connection) -> None:
    """Bring a new file, or one of an older version, up to date: one process does, while others wait for it."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        if _version(db) == VERSION:  # by now
            return
        for table, columns in TABLES.items():
            db.execute(f"CREATE TABLE IF NOT EXISTS {table} ({columns}) WITHOUT ROWID")
        for table, texts in JSON.items():
            names = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            if b"checksum" not in names:
                db.execute(f"ALTER TABLE {table} ADD COLUMN checksum TEXT NOT NULL DEFAULT ''")
                sound = " AND ".join(f"json_valid({name})" for name in texts)
                checksum = SEALS[table].removeprefix("checksum IS ")
                db.execute(f"UPDATE {table} SET checksum = {checksum} WHERE {sound}")  # noqa: S608  (our names)
        db.execute(f"PRAGMA user_version = {VERSION}")


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])
