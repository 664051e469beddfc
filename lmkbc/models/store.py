"""The store: every answer of a model, kept under a key of all that could change it, in one SQLite file.

An answer is committed as soon as it is there, so a run that is killed at any point asks again only for what was in
flight. The journal is written ahead (WAL): a killed process loses nothing, a power cut at most the last moments. What
is stored is JSON; prompts, which many draws share, are stored once. A row that no longer holds what was put into it is
as if it were not there.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from lmkbc.errors import InputError, LmkbcError
from lmkbc.files.database import DATABASE_ERRORS, is_damage
from lmkbc.files.places import cache_dir
from lmkbc.models.store_file import heal, opened, seal

Shape = TypeVar("Shape")


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


_SETTINGS = tuple(field.name for field in fields(Call) if field.name != "prompt")


class Store:
    """Answers by call. Only answers are kept, never failures, so that a failed call is made again.

    damaged: model (or table) -> rows that were found not to hold what was put into them. They are dropped, so that they
    are asked for again. LmkbcError for a file that cannot be read or written, or is damaged beyond single rows.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damaged: Counter[str] = Counter()
        try:
            self._db = opened(path)
        except (OSError, *DATABASE_ERRORS) as error:
            raise InputError(f"{path} cannot serve as the store ({error}): name another with --store") from None

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a person should know of the file: how many rows were damaged, of which models."""
        if not self.damaged:
            return ()
        whose = ", ".join(f"{count} of {name!r}" for name, count in sorted(self.damaged.items()))
        return (
            f"{self.path}: {self.damaged.total()} damaged rows dropped ({whose}): what they held is asked for again",
        )

    def get(self, call: Call, shape: type[Shape] | Any = Any) -> Shape | Any | None:
        """The stored answer, None where there is none. shape: its type; what is of another one counts as damaged."""
        with self._reading():
            row = self._row("SELECT model, call, prompt, answer, date, checksum FROM answers WHERE key = ?", call.key)
        if row is None:
            return None
        *sealed, answer, date, checksum = row
        if checksum == seal(call.key.encode(), *sealed, answer, date).encode():
            try:
                return msgspec.json.decode(answer, type=shape)
            except msgspec.DecodeError:  # written by something else, and sealed when the file was brought up to date
                pass
        self.damaged[call.model] += 1
        self.drop(call)
        return None

    def put(self, answers: Iterable[tuple[Call, Any]]) -> None:
        """Commit answers (JSON values) in one transaction."""
        date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        with self._writing():
            for call, answer in answers:
                row = call.key, call.model, _json(call.settings), call.prompt_digest, _json(answer), date
                checksum = seal(*(value.encode() for value in row))
                self._db.execute("INSERT OR IGNORE INTO prompts VALUES (?, ?)", (row[3], _json(call.prompt)))
                self._db.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?)", (*row, checksum))

    def drop(self, call: Call) -> None:
        """Forget an answer, so that it is asked for again."""
        with self._writing():
            self._db.execute("DELETE FROM answers WHERE key = ?", (call.key,))

    def note(self, key: str) -> Any | None:
        """What was noted under a key, None where nothing was."""
        with self._reading():
            row = self._row("SELECT note, checksum FROM notes WHERE key = ?", key)
        if row is None:
            return None
        if row[1] == seal(key.encode(), row[0]).encode():
            return msgspec.json.decode(row[0])
        self.damaged["notes"] += 1
        self.set_note(key, None)
        return None

    def set_note(self, key: str, note: Any) -> None:
        """Note a JSON value, such as the work that a server still does for us; None forgets it."""
        with self._writing():
            if note is None:
                self._db.execute("DELETE FROM notes WHERE key = ?", (key,))
            else:
                row = key, _json(note), seal(key.encode(), _json(note).encode())
                self._db.execute("INSERT OR REPLACE INTO notes VALUES (?, ?, ?)", row)

    def stats(self) -> list[dict[str, Any]]:
        """Per model: answers, distinct prompts, tokens where answers tell them, first and last date (UTC)."""
        self.heal()
        sql = """SELECT model, count(*), count(DISTINCT prompt),
            total(json_extract(answer, '$.prompt_tokens')), total(json_extract(answer, '$.completion_tokens')),
            min(date), max(date) FROM answers GROUP BY model ORDER BY model"""
        names = "model", "answers", "prompts", "prompt_tokens", "completion_tokens", "first", "last"
        with self._reading():
            rows = self._db.execute(sql).fetchall()
        return [dict(zip(names, map(_readable, row), strict=True)) for row in rows]

    def export(self, model: str | None = None) -> Iterator[bytes]:
        """One JSON line per answer, in the order of the keys, so that two exports can be compared.

        An answer whose prompt was damaged has null in its place.
        """
        self.heal()
        sql = """SELECT key, call, prompts.prompt, answer, date FROM answers LEFT JOIN prompts
            ON digest = answers.prompt WHERE ? IS NULL OR model = ? ORDER BY key"""
        with self._reading():
            for key, call, prompt, answer, date in self._db.execute(sql, (model, model)):
                raw = {"call": call, "prompt": prompt or b"null", "answer": answer}
                parts = {name: msgspec.Raw(text) for name, text in raw.items()}
                yield msgspec.json.encode({"key": key.decode(), "date": date.decode()} | parts)

    def prune(self, *, model: str | None = None, before: str | None = None) -> int:
        """Drop answers of a model, or given before a date (ISO, UTC), or both; all without either. Returns how many."""
        self.heal()
        with self._writing():
            sql = "DELETE FROM answers WHERE (? IS NULL OR model = ?) AND (? IS NULL OR date < ?)"
            count = self._db.execute(sql, (model, model, before, before)).rowcount
            self._db.execute("DELETE FROM prompts WHERE digest NOT IN (SELECT prompt FROM answers)")
        with self._reading():
            self._db.execute("VACUUM")
        return count

    def heal(self) -> None:
        """Drop all damaged rows, and remember how many of which model there were."""
        with self._writing():
            self.damaged.update(heal(self._db))

    def close(self) -> None:
        """Release the file."""
        self._db.close()

    def _row(self, sql: str, key: str) -> tuple[Any, ...] | None:
        """The row of a key, None for none. What is no text in it, as only in a damaged one, becomes empty."""
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
        return LmkbcError(f"{self.path} cannot be {done} ({error}): {advice}")


def default_store() -> Path:
    """Where answers are kept unless --store names a file: in the user's cache."""
    return cache_dir() / "store.sqlite"


def _readable(value: Any) -> Any:
    """A value of a summary: text, or a whole number."""
    if isinstance(value, bytes):
        return value.decode()
    return int(value) if math.isfinite(value) else 0


def _json(value: Any) -> str:
    return msgspec.json.encode(value, order="deterministic").decode()


def _digest(value: Any) -> str:
    return hashlib.sha256(_json(value).encode()).hexdigest()


def _whole(value: Any) -> Any:
    """A JSON value in which whole floats are integers."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {name: _whole(inner) for name, inner in value.items()}
    return [_whole(inner) for inner in value] if isinstance(value, list | tuple) else value
