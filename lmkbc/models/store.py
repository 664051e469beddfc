"""The store: all answers of models, under keys of everything that determines them, in a SQLite file or in PostgreSQL.

An answer is committed as soon as it arrives. A killed run therefore repeats only the calls in flight. Answers are JSON;
a prompt that many draws share is stored once. Workers on many machines share a PostgreSQL database. A dry run looks
answers up, and counts missing ones instead of requesting them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from lmkbc.errors import InputError
from lmkbc.models.call import Call, canonical_json
from lmkbc.models.store_place import Place

if TYPE_CHECKING:
    from lmkbc.models.store_rows import Row, Rows

Shape = TypeVar("Shape")
Usable = Callable[[Any], bool]
"""Function that returns whether an answer is usable."""


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


@dataclass(slots=True)
class CallCounter:
    """Counts of a dry run's calls, each call once.

    answer_tokens: limits of the answers, or guesses without a limit.
    estimated: requests with estimated token counts.
    stored: answers in the store.
    """

    requests: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0
    estimated: int = 0
    stored: int = 0
    _keys: set[str] = field(default_factory=set, repr=False)

    def add(self, key: str, prompt: int, answer: int, *, requests: int = 1, estimated: bool = False) -> None:
        """Count a call, unless it was counted before: a real run would then have it in the store."""
        if key not in self._keys:
            self._keys.add(key)
            self.requests += requests
            self.prompt_tokens += prompt
            self.answer_tokens += answer
            self.estimated += requests * estimated

    def taken(self) -> CallCounter:
        """Return the counts and start new ones; counted calls are not counted again."""
        counts = CallCounter(self.requests, self.prompt_tokens, self.answer_tokens, self.estimated, self.stored)
        self.requests = self.prompt_tokens = self.answer_tokens = self.estimated = self.stored = 0
        return counts


class DryStore(Store):
    """Store that neither stores nor drops answers.

    blank: whether there is no file; none is made. fresh: whether earlier answers are ignored.
    """

    def __init__(self, place: Place, counter: CallCounter, *, fresh: bool = False) -> None:
        self.counter, self.blank = counter, isinstance(place, Path) and not place.exists()
        self._fresh = fresh
        self.place = place
        if not self.blank:
            super().__init__(place)

    def get(self, call: Call, shape: type[Shape] | Any = Any) -> Shape | Any | None:
        """Return the stored answer; None if there is none."""
        answer = None if self.blank or self._fresh else super().get(call, shape)
        self.counter.stored += answer is not None
        return answer

    def put(self, answers: Iterable[tuple[Call, Any]]) -> frozenset[str]:  # noqa: ARG002 -- the store's signature
        """Store nothing."""
        return frozenset()

    def drop(self, call: Call) -> None:
        """Drop nothing."""

    def note(self, key: str) -> Any | None:
        """Return the note; None if there is none."""
        return None if self.blank else super().note(key)

    def set_note(self, key: str, note: Any) -> None:
        """Store no note."""

    def close(self) -> None:
        """Close the file."""
        if not self.blank:
            super().close()


def answered(
    store: Store | None,
    calls: Sequence[Call],
    ask: Callable[[list[int]], Iterable[Mapping[int, Any]]],
    shape: type[Shape] | Any = Any,
    usable: Usable | None = None,
) -> Iterator[tuple[int, Any]]:
    """Look up calls, request missing answers, commit them, and yield (place, answer) per call, stored ones first.

    ask: receives the places of calls without a stored answer; yields batches, each a mapping of places to answers. Each
    batch is committed in one transaction before its answers are yielded. None is a failure: yielded, but not stored.
    shape, usable: as in `look_up` and `commit`.
    store: None to store nothing. For example::

        def ask(missing: list[int]) -> Iterator[dict[int, Reply | None]]:
            for start in range(0, len(missing), 512):
                places = missing[start : start + 512]
                yield dict(zip(places, model.complete([prompts[place] for place in places]), strict=True))

        replies = dict(answered(store, calls, ask, Reply, lambda reply: reply.is_answer))
    """
    stored = look_up(store, calls, shape, usable)
    missing = [place for place, answer in enumerate(stored) if answer is None]
    yield from ((place, answer) for place, answer in enumerate(stored) if answer is not None)
    for batch in ask(missing) if missing else ():
        places = list(batch)
        kept = commit(store, [(calls[place], batch[place]) for place in places], shape, usable)
        yield from zip(places, kept, strict=True)


def look_up(
    store: Store | None, calls: Iterable[Call], shape: type[Shape] | Any = Any, usable: Usable | None = None
) -> list[Any]:
    """Return the stored answer of each call; None if there is none.

    shape: type of an answer. usable: a stored answer for which it returns False is dropped, so that the call is
    repeated.
    """
    found: list[Any] = []
    for call in calls:
        answer = store.get(call, shape) if store else None
        if store and answer is not None and usable and not usable(answer):
            store.drop(call)
            answer = None
        found.append(answer)
    return found


def commit(
    store: Store | None,
    answers: Sequence[tuple[Call, Any]],
    shape: type[Shape] | Any = Any,
    usable: Usable | None = None,
) -> list[Any]:
    """Commit answers in one transaction, and return them; if another worker was faster, its answer is returned.

    None and unusable answers are returned but not stored. Answers are JSON values, structs or dataclasses.
    """
    if store is None:
        return [answer for _, answer in answers]
    kept = [pair for pair in answers if pair[1] is not None and (usable is None or usable(pair[1]))]
    plain = [(call, msgspec.to_builtins(answer)) for call, answer in kept]
    there = store.put(plain)
    known = [call for call, _ in kept if call.key in there]
    first = dict(zip((call.key for call in known), look_up(store, known, shape, usable), strict=True))
    store.put((call, answer) for call, answer in plain if call.key in first and first[call.key] is None)
    return [answer if (other := first.get(call.key)) is None else other for call, answer in answers]


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
