"""Answers of models: the store, the loop over it (found there, else asked for and kept), and their count in a dry run.

The store holds answers under keys of everything that determines them, in a SQLite file or in PostgreSQL. An answer is
committed as soon as it arrives. A killed run therefore repeats only the calls in flight. Answers are JSON; a prompt
that many draws share is stored once. Workers on many machines share a PostgreSQL database.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from lmkbc.errors import InputError
from lmkbc.models.base import (
    BackEnd,
    Call,
    Dialogue,
    Key,
    Outcome,
    PlannedRequest,
    Prompt,
    Request,
    Response,
    Result,
    Size,
    canonical_json,
    next_requests,
)
from lmkbc.models.store_place import Place

if TYPE_CHECKING:
    from lmkbc.models.store_rows import Row, Rows


Shape = TypeVar("Shape")


class Store:
    """Answers by call. Failures are never stored, so a failed call is repeated.

    place: the file or database.
    renewed: keys with an answer from this run, shared by all its steps; earlier answers are ignored, and replaced one
    by one. None to use all answers.

    Raise LmkbcError if the store cannot be read or written. A store that fails is never treated as empty.
    """

    def __init__(self, place: Place, renewed: set[str] | None = None) -> None:
        self.place, self._renewed = place, renewed
        self._rows = _opened(place)

    def get(self, call: Call, shape: type[Shape] | Any = Any) -> Shape | Any | None:
        """Return the stored answer; None if there is none.

        shape: its type; an answer of another type is dropped, so that the call is repeated.
        """
        if self._renewed is not None and call.key not in self._renewed:
            return None
        answer = self._rows.get(self._rows.answers, call.key)
        try:
            return None if answer is None else msgspec.json.decode(answer, type=shape)
        except msgspec.DecodeError:
            self.drop(call)
            return None

    def put(self, answers: Iterable[tuple[Call, Any]], *, replace: bool = False) -> frozenset[str]:
        """Commit answers (JSON values) in one transaction, and return the keys that already had an answer.

        The transaction is durable when this returns. The first answer to a call stays, unless it is to be replaced;
        another worker may have been faster.
        """
        date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        prompts: dict[str, str] = {}
        rows: dict[str, Row] = {}
        for call, answer in answers:
            if self._renewed is not None and call.key not in self._renewed:
                self._renewed.add(call.key)
                self.drop(call)
            rows[call.key] = {
                "key": call.key,
                "model": _column(call.model),
                "call": canonical_json(call.settings),
                "prompt": call.prompt_digest,
                "answer": canonical_json(answer),
                "date": date,
            }
            prompts[call.prompt_digest] = canonical_json(call.prompt)
        new = [rows[key] for key in sorted(rows)]
        return frozenset(self._rows.insert(prompts, new, replace=replace) if new else ())

    def drop(self, call: Call) -> None:
        """Delete an answer, so that the call is repeated."""
        self._rows.delete(self._rows.answers, call.key)

    def note(self, key: str) -> Any | None:
        """Return the note under a key; None if there is none."""
        note = self._rows.get(self._rows.notes, key)
        return None if note is None else msgspec.json.decode(note)

    def set_note(self, key: str, note: Any) -> None:
        """Store a JSON value under a key, such as the models that a server lists."""
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


Usable = Callable[[Any], bool]
"""Function that returns whether an answer is usable."""


class KeptAnswers:
    """Answers to some calls, by their places: those of the store, and new ones, which are kept as soon as they arrive.

    store: None to keep nothing.
    shape: type of an answer.
    usable: function that says whether an answer may be kept; a kept one that is unusable counts as missing.
    stored: the answers that the store has. found: the answer to each call; None if there is none.

    For example::

        answers = KeptAnswers(store, calls, Reply, lambda reply: reply.is_answer)
        for place in answers.missing:
            answers.keep({place: ask(calls[place])})
        replies = answers.found
    """

    def __init__(
        self, store: Store | None, calls: Sequence[Call], shape: type | Any = Any, usable: Usable | None = None
    ) -> None:
        self._store, self._calls, self._shape, self._usable = store, calls, shape, usable
        self.found: list[Any] = [self._looked_up(call) for call in calls]
        self.stored = {place: answer for place, answer in enumerate(self.found) if answer is not None}
        self._missing = dict.fromkeys(place for place, answer in enumerate(self.found) if answer is None)

    @property
    def missing(self) -> list[int]:
        """Return the places of calls that still lack an answer, in order."""
        return list(self._missing)

    def keep(self, batch: Mapping[int, Any]) -> dict[int, Any]:
        """Commit answers in one transaction, and return them; if another worker was faster, its answer is returned.

        None and unusable answers are returned but not stored. Answers are JSON values, structs or dataclasses.
        """
        answers = dict(batch)
        kept = {
            place: msgspec.to_builtins(answer)
            for place, answer in batch.items()
            if answer is not None and (self._usable is None or self._usable(answer))
        }
        if self._store and kept:
            there = self._store.put((self._calls[place], answer) for place, answer in kept.items())
            for place in [place for place in kept if self._calls[place].key in there]:
                if (other := self._looked_up(self._calls[place])) is not None:
                    answers[place] = other
                else:
                    self._store.drop(self._calls[place])
                    self._store.put([(self._calls[place], kept[place])])
        for place, answer in answers.items():
            self.found[place] = answer
            self._missing.pop(place, None)
        return answers

    def _looked_up(self, call: Call) -> Any:
        answer = self._store.get(call, self._shape) if self._store else None
        return answer if answer is None or self._usable is None or self._usable(answer) else None


OPTIONS = {"options", "words"}
"""Names of the setting that lists the options of a call: after a prompt, and after a plain prompt."""


class Scored(msgspec.Struct, omit_defaults=True):
    """Log-probabilities of options after a prompt, None if unknown, and the tokens of all requests for them."""

    scores: dict[str, float | None]
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def joined(self, earlier: Scored) -> Scored:
        """Return the scores of both."""
        tokens = self.prompt_tokens + earlier.prompt_tokens, self.completion_tokens + earlier.completion_tokens
        return Scored(earlier.scores | self.scores, *tokens)


class KeptOptions:
    """Scores of options after prompts, kept by option: a list that has grown is asked for its new options alone.

    calls: one per prompt, whose only setting is its list of options.
    stored: place -> scores that the store has. asked: place -> call for the options without a score.
    """

    def __init__(self, store: Store | None, calls: Sequence[Call]) -> None:
        self._store = store
        self._prompts = [replace(call, sampling=dict.fromkeys(call.sampling)) for call in calls]  # whatever the list
        self._options: list[list[str]] = [list(*call.sampling.values()) for call in calls]
        found = map(self._looked_up, self._prompts)
        self.stored = {place: scored for place, scored in enumerate(found) if scored is not None}
        self._found = dict(self.stored)
        self.asked: dict[int, Call] = {}
        for place, (call, options) in enumerate(zip(calls, self._options, strict=True)):
            known = self.stored[place].scores if place in self.stored else {}
            if lacking := [option for option in options if option not in known]:
                self.asked[place] = replace(call, sampling=dict.fromkeys(call.sampling, lacking))

    def keep(self, batch: Mapping[int, Scored]) -> None:
        """Commit scores in one transaction, added to those that are there."""
        new = {
            place: scored.joined(self._looked_up(self._prompts[place]) or Scored({})) for place, scored in batch.items()
        }
        self._found |= new
        if self._store:
            answers = [(self._prompts[place], msgspec.to_builtins(scored)) for place, scored in new.items()]
            self._store.put(answers, replace=True)

    def rows(self) -> list[list[float] | None]:
        """Return the log-probability of each option of each call, -inf if unknown; None if no score was found."""
        rows: list[list[float] | None] = []
        for place, options in enumerate(self._options):
            known = self._found[place].scores if place in self._found else None
            logs = [None if known is None else known.get(option) for option in options]
            rows.append([-math.inf if log is None else log for log in logs] if known or not options else None)
        return rows

    def _looked_up(self, prompt: Call) -> Scored | None:
        return self._store.get(prompt, Scored) if self._store else None


@dataclass(slots=True)
class CallCounter:
    """Counts of a dry run's calls, each call once.

    answer_tokens: limits of the answers, or guesses without a limit.
    estimated: requests with estimated token counts.
    stored: answers in the store.
    further: most requests that may follow, since they depend on answers; their tokens are in the sums.
    """

    requests: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0
    estimated: int = 0
    stored: int = 0
    further: int = 0
    _keys: set[str] = field(default_factory=set, repr=False)

    def add(self, call: Call, size: Size) -> None:
        """Count a call, unless it was counted before: a real run would then have it in the store."""
        if call.key not in self._keys:
            self._keys.add(call.key)
            self.requests += size.requests
            self.prompt_tokens += size.prompt_tokens
            self.answer_tokens += size.answer_tokens
            self.estimated += size.requests * size.estimated

    def add_further(self, planned: PlannedRequest, size: Size) -> None:
        """Count requests that may follow, as often as they may be sent, with answers of full length in their slots."""
        self.further += size.requests * planned.times
        self.prompt_tokens += size.prompt_tokens * planned.times + planned.held * size.requests
        self.answer_tokens += size.answer_tokens * planned.times
        self.estimated += size.requests * size.estimated * planned.times

    def taken(self) -> CallCounter:
        """Return the counts and start new ones; counted calls are not counted again."""
        names = ("requests", "prompt_tokens", "answer_tokens", "estimated", "stored", "further")
        counts = CallCounter(**{name: getattr(self, name) for name in names})
        for name in names:
            setattr(self, name, 0)
        return counts


class DryStore(Store):
    """Store from which answers are read, and not dropped.

    blank: whether there is no file; none is made. fresh: whether earlier answers are ignored.
    """

    def __init__(self, place: Place, counter: CallCounter, *, fresh: bool = False) -> None:
        self.counter, self.blank = counter, isinstance(place, Path) and not place.exists()
        self.place = place
        if not self.blank:
            super().__init__(place, set() if fresh else None)

    def get(self, call: Call, shape: type[Shape] | Any = Any) -> Shape | Any | None:
        """Return the stored answer; None if there is none."""
        answer = None if self.blank else super().get(call, shape)
        self.counter.stored += answer is not None
        return answer

    def drop(self, call: Call) -> None:
        """Drop nothing."""

    def holds(self, prompt: Call) -> bool:
        """Return whether there may be an answer to the prompt of a call."""
        return not self.blank and self._rows.get(self._rows.prompts, prompt.prompt_digest) is not None

    def note(self, key: str) -> Any | None:
        """Return the note; None if there is none."""
        return None if self.blank else super().note(key)

    def set_note(self, key: str, note: Any) -> None:
        """Store nothing."""

    def close(self) -> None:
        """Close the file."""
        if not self.blank:
            super().close()


class CountingModel:
    """Counts the requests of a back end for answers that the store lacks. Their replies count as failed."""

    def __init__(self, back_end: BackEnd, store: DryStore) -> None:
        self.name, self.place = back_end.name, back_end.place
        self._back_end, self._store = back_end, store

    def complete(
        self,
        dialogues: Mapping[Key, Dialogue[Result]],
        outcome: Outcome | None = None,  # noqa: ARG002 -- the signature of LanguageModel
    ) -> Iterator[tuple[Key, Result]]:
        """Yield the results of dialogues, with stored replies alone."""
        for key, dialogue in dialogues.items():
            requests, result = next_requests(dialogue)
            while requests:
                requests, result = next_requests(dialogue, list(map(self._response, requests)))
            yield key, result  # type: ignore[misc]

    def foresee(self, planned: PlannedRequest) -> None:
        """Count what may follow."""
        request = planned.request
        for _, size in self._back_end.sizes(self._back_end.calls(request, request.prompt)):
            self._store.counter.add_further(planned, size)

    def score(self, prompts: Sequence[Prompt], options: Sequence[Sequence[str]]) -> list[None]:
        """Count the prompts whose options are not scored yet, and return no scores."""
        for call in {call.key: call for call in self._back_end.option_calls(prompts, options)}.values():
            listed = call.sampling.keys() <= OPTIONS
            asked = KeptOptions(self._store, [call]).asked.values() if listed else [call]
            self._count([one for one in asked if listed or self._store.get(one) is None])
        return [None] * len(prompts)

    def beginnings(self, prompt: Prompt, options: Sequence[str]) -> list[str]:
        """Return the shortest beginning of each option that no other option has."""
        return self._back_end.beginnings(prompt, options)

    def _response(self, request: Request) -> Response:
        """Return the stored replies to the longest prompt that has some, and count what is missing."""
        first: list[Call] | None = None
        for prompt in self._back_end.prompts(request):
            is_kept = self._store.holds(self._back_end.calls(replace(request, draws=request.draws[:1]), prompt)[0])
            if first is not None and not is_kept:
                continue
            calls = self._back_end.calls(request, prompt)
            kept = self._back_end.kept(calls) if is_kept else [None] * len(calls)
            missing = [call for call, reply in zip(calls, kept, strict=True) if reply is None]
            first = missing if first is None else first
            if len(missing) < len(calls):
                self._count(missing)
                return Response(prompt, kept).plain()
            if self._store.blank:
                break
        self._count(first or [])
        return Response(request.prompt, [None] * len(request.draws))

    def _count(self, calls: Sequence[Call]) -> None:
        for call, size in self._back_end.sizes(calls) if calls else ():
            self._store.counter.add(call, size)
