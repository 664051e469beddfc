"""The store: all answers of models, under keys of everything that determines them, in a SQLite file or in PostgreSQL.

An answer is committed as soon as it arrives. A killed run therefore repeats only the calls in flight. Answers are JSON;
a prompt that many draws share is stored once. Workers on many machines share a PostgreSQL database.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from lmkbc.errors import InputError
from lmkbc.models.base import Call, canonical_json
from lmkbc.models.store_place import Place

if TYPE_CHECKING:
    from lmkbc.models.store_rows import Row, Rows

Shape = TypeVar("Shape")


class Store:
    """Answers by call. Failures are never stored, so a failed call is repeated.

    place: the file or database.

    Raise LmkbcError if the store cannot be read or written. A store that fails is never treated as empty.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self._rows = _opened(place)

    def get(self, call: Call, shape: type[Shape] | Any = Any) -> Shape | Any | None:
        """Return the stored answer; None if there is none.

        shape: its type; an answer of another type is dropped, so that the call is repeated.
        """
        answer = self._rows.get(self._rows.answers, call.key)
        try:
            return None if answer is None else msgspec.json.decode(answer, type=shape)
        except msgspec.DecodeError:
            self.drop(call)
            return None

    def put(self, answers: Iterable[tuple[Call, Any]]) -> frozenset[str]:
        """Commit answers (JSON values) in one transaction, and return the keys that already had an answer.

        The transaction is durable when this returns. The first answer to a call stays; another worker may have been
        faster.
        """
        date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        prompts: dict[str, str] = {}
        rows: dict[str, Row] = {}
        for call, answer in answers:
            rows[call.key] = {
                "key": call.key,
                "model": _column(call.model),
                "call": canonical_json(call.settings),
                "prompt": call.prompt_digest,
                "answer": canonical_json(answer),
                "date": date,
            }
            prompts[call.prompt_digest] = canonical_json(call.prompt)
        return frozenset(self._rows.insert(prompts, [rows[key] for key in sorted(rows)]) if rows else ())

    def drop(self, call: Call) -> None:
        """Delete an answer, so that the call is repeated."""
        self._rows.delete(self._rows.answers, call.key)

    def note(self, key: str) -> Any | None:
        """Return the note under a key; None if there is none."""
        note = self._rows.get(self._rows.notes, key)
        return None if note is None else msgspec.json.decode(note)

    def set_note(self, key: str, note: Any) -> None:
        """Store a JSON value under a key, such as the id of a job at a server; None deletes it."""
        if note is None:
            self._rows.delete(self._rows.notes, key)
        else:
            self._rows.set_note(key, canonical_json(note))

    def stats(self) -> list[dict[str, Any]]:
        """Return, per model: answers, distinct prompts, tokens reported with answers, first and last date (UTC)."""
        return self._rows.summary()

    def export(self, model: str | None = None) -> Iterator[bytes]:
        """Yield one JSON line per answer, in the order of the keys, so that two exports can be compared."""
        for key, call, prompt, answer, date in self._rows.lines(model and _column(model)):
            raw = {"call": call, "prompt": prompt, "answer": answer}
            parts = {name: msgspec.Raw(text.encode()) for name, text in raw.items()}
            yield msgspec.json.encode({"key": key, "date": date} | parts)

    def prune(self, *, model: str | None = None, before: str | None = None) -> int:
        """Drop answers of a model, or from before a date (ISO, UTC), or both, and return their number.

        Without model and date, all answers are dropped.
        """
        return self._rows.prune(model and _column(model), before)

    def close(self) -> None:
        """Close the file, or the connection."""
        self._rows.close()


class FreshStore(Store):
    """Store that ignores earlier answers and replaces them one by one.

    renewed: keys with an answer from this run, shared by all steps of the run.
    """

    def __init__(self, place: Place, renewed: set[str]) -> None:
        super().__init__(place)
        self._renewed = renewed

    def get(self, call: Call, shape: type[Shape] | Any = Any) -> Shape | Any | None:
        """Return the answer from this run; None if there is none yet."""
        return super().get(call, shape) if call.key in self._renewed else None

    def put(self, answers: Iterable[tuple[Call, Any]]) -> frozenset[str]:
        """Commit answers in place of earlier ones; otherwise as in `Store`."""
        given = list(answers)
        for call in {call.key: call for call, _ in given if call.key not in self._renewed}.values():
            self.drop(call)
        self._renewed.update(call.key for call, _ in given)
        return super().put(given)


def _opened(place: Place) -> Rows:
    if isinstance(place, Path):
        from lmkbc.models.store_rows import FileRows  # imported late: loads the database's library

        return FileRows(place)
    try:
        from lmkbc.models.store_postgres import PostgresRows
    except ImportError:
        raise InputError(f"{place} needs the PostgreSQL driver: install lmkbc[postgres]") from None
    return PostgresRows(place)


def _column(text: str) -> str:
    """Return a text without U+0000, which PostgreSQL does not accept in a column."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")
