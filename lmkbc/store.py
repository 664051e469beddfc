"""The store: every answer of a model, kept under a key of all that could change it, in one SQLite file.

An answer is committed as soon as it is there, so a run that is killed at any point asks again only for what was in
flight. The journal is written ahead (WAL): a killed process loses nothing, a power cut at most the last moments. What
is stored is JSON; prompts, which many draws share, are stored once.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from lmkbc.data import cache_dir
from lmkbc.errors import InputError, LmkbcError

VERSION = 1
SCHEMA = """
CREATE TABLE IF NOT EXISTS prompts (digest TEXT PRIMARY KEY, prompt TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, model TEXT NOT NULL, call TEXT NOT NULL,
    prompt TEXT NOT NULL, answer TEXT NOT NULL, date TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS notes (key TEXT PRIMARY KEY, note TEXT NOT NULL) WITHOUT ROWID;
"""


@dataclass(frozen=True, kw_only=True)
class Call:
    """One draw from a model: all that changes its answer. What does not (timeouts, keys, concurrency) is not here.

    prompt: the messages or the text. sampling: JSON values. draw: tells draws of the same prompt and seed apart.
    """

    model: str
    prompt: Any
    base_url: str = ""
    revision: str = ""
    sampling: Mapping[str, Any] = field(default_factory=dict)
    schema: Mapping[str, Any] | None = None
    seed: int | None = None
    draw: int = 0

    @cached_property
    def key(self) -> str:
        """SHA-256 of the call's canonical JSON, in which 1 and 1.0 are the same."""
        return _digest(self.settings | {"sampling": _whole(self.sampling), "prompt": self.prompt_digest})

    @cached_property
    def prompt_digest(self) -> str:
        """SHA-256 of the prompt's JSON."""
        return _digest(self.prompt)

    @property
    def settings(self) -> dict[str, Any]:
        """All but the prompt."""
        return {name: getattr(self, name) for name in _SETTINGS}


_SETTINGS = tuple(one.name for one in fields(Call) if one.name != "prompt")


class Store:
    """Answers by call. Only answers are kept, never failures, so that a failed call is made again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=30)
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            self._db.executescript(
                f"PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; {SCHEMA}"
                + (f"PRAGMA user_version = {VERSION};" if not version else "")
            )
        except (OSError, sqlite3.DatabaseError) as error:
            raise InputError(f"{path} cannot serve as the store ({error}): name another with --store") from None
        if version > VERSION:
            raise InputError(f"{path} was written by a newer lmkbc: update lmkbc, or name another with --store")

    def get(self, call: Call) -> Any | None:
        """The stored answer, None where there is none. LmkbcError when the file is damaged."""
        try:
            row = self._db.execute("SELECT answer FROM answers WHERE key = ?", (call.key,)).fetchone()
        except sqlite3.DatabaseError as error:
            raise LmkbcError(f"{self.path} cannot be read ({error}): name another with --store") from None
        return msgspec.json.decode(row[0]) if row else None

    def put(self, answers: Iterable[tuple[Call, Any]]) -> None:
        """Commit answers (JSON values) in one transaction. LmkbcError when the disk refuses."""
        date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        try:
            with self._db:
                for call, answer in answers:
                    row = call.key, call.model, _json(call.settings), call.prompt_digest, _json(answer), date
                    self._db.execute("INSERT OR IGNORE INTO prompts VALUES (?, ?)", (row[3], _json(call.prompt)))
                    self._db.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?)", row)
        except sqlite3.DatabaseError as error:
            raise LmkbcError(f"{self.path} cannot be written ({error}): make room and run again to resume") from None

    def note(self, key: str) -> Any | None:
        """What was noted under a key, None where nothing was."""
        row = self._db.execute("SELECT note FROM notes WHERE key = ?", (key,)).fetchone()
        return msgspec.json.decode(row[0]) if row else None

    def set_note(self, key: str, note: Any) -> None:
        """Note a JSON value, such as the work that a server still does for us; None forgets it."""
        with self._db:
            if note is None:
                self._db.execute("DELETE FROM notes WHERE key = ?", (key,))
            else:
                self._db.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (key, _json(note)))

    def stats(self) -> list[dict[str, Any]]:
        """Per model: answers, distinct prompts, tokens where answers tell them, first and last date (UTC)."""
        sql = """SELECT model, count(*), count(DISTINCT prompt),
            total(json_extract(answer, '$.prompt_tokens')), total(json_extract(answer, '$.completion_tokens')),
            min(date), max(date) FROM answers GROUP BY model ORDER BY model"""
        names = "model", "answers", "prompts", "prompt_tokens", "completion_tokens", "first", "last"
        found = [dict(zip(names, row, strict=True)) for row in self._db.execute(sql)]
        return [one | {name: int(one[name]) for name in names[3:5]} for one in found]

    def export(self, model: str | None = None) -> Iterator[bytes]:
        """One JSON line per answer, in the order of the keys, so that two exports can be compared."""
        sql = """SELECT key, call, prompts.prompt, answer, date FROM answers JOIN prompts ON digest = answers.prompt
            WHERE ? IS NULL OR model = ? ORDER BY key"""
        for key, call, prompt, answer, date in self._db.execute(sql, (model, model)):
            raw = {"call": call, "prompt": prompt, "answer": answer}
            parts = {name: msgspec.Raw(text.encode()) for name, text in raw.items()}
            yield msgspec.json.encode({"key": key, "date": date} | parts)

    def prune(self, *, model: str | None = None, before: str | None = None) -> int:
        """Drop answers of a model, or given before a date (ISO, UTC), or both; all without either. Returns how many."""
        with self._db:
            sql = "DELETE FROM answers WHERE (? IS NULL OR model = ?) AND (? IS NULL OR date < ?)"
            count = self._db.execute(sql, (model, model, before, before)).rowcount
            self._db.execute("DELETE FROM prompts WHERE digest NOT IN (SELECT prompt FROM answers)")
        self._db.execute("VACUUM")
        return count

    def close(self) -> None:
        """Release the file."""
        self._db.close()


def default_store() -> Path:
    """Where answers are kept unless --store names a file: in the user's cache."""
    return cache_dir() / "store.sqlite"


def _json(value: Any) -> str:
    return msgspec.json.encode(value, order="deterministic").decode()


def _digest(value: Any) -> str:
    return hashlib.sha256(_json(value).encode()).hexdigest()


def _whole(value: Any) -> Any:
    """A JSON value in which whole floats are integers."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {name: _whole(one) for name, one in value.items()}
    return [_whole(one) for one in value] if isinstance(value, list | tuple) else value
