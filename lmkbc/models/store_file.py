"""The store's file: its tables, the seals of their rows, and the way from an older version to this one.

A row is sealed with a checksum of all that it holds (a prompt by the digest that is its key), so that damage shows.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections import Counter
from pathlib import Path

from lmkbc.errors import InputError

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


def opened(path: Path) -> sqlite3.Connection:
    """A connection to a file of this version, made or brought up to date where need be. Texts are read as bytes.

    InputError for a file of a newer version; OSError and `files.database.DATABASE_ERRORS` for what can be no store.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
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
