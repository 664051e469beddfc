"""The back end of a dry run: it looks answers up, counts the requests for missing ones, and sends none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmkbc.models.base import BackEnd, Dialogue, Key, Outcome, Prompt, Request, Response, Result, Size, next_requests
from lmkbc.models.call import Call
from lmkbc.models.store import Shape, Store
from lmkbc.models.store_place import Place


@dataclass(slots=True)
class CallCounter:
    """Counts of a dry run's calls, each call once.

    answer_tokens: limits of the answers, or guesses without a limit.
    estimated: requests with estimated token counts.
    stored: answers in the store.
    scored: model's identity and prompt, as a digest, of each prompt whose options are scored.
    """

    requests: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0
    estimated: int = 0
    stored: int = 0
    scored: set[tuple[str, str]] = field(default_factory=set, repr=False)
    _keys: set[str] = field(default_factory=set, repr=False)

    def add(self, call: Call, size: Size) -> None:
        """Count a call, unless it was counted before: a real run would then have it in the store."""
        if call.key not in self._keys:
            self._keys.add(call.key)
            self.requests += size.requests
            self.prompt_tokens += size.prompt_tokens
            self.answer_tokens += size.answer_tokens
            self.estimated += size.requests * size.estimated

    def taken(self) -> CallCounter:
        """Return the counts and start new ones; counted calls are not counted again."""
        counts = CallCounter(self.requests, self.prompt_tokens, self.answer_tokens, self.estimated, self.stored)
        self.requests = self.prompt_tokens = self.answer_tokens = self.estimated = self.stored = 0
        return counts


class DryStore(Store):
    """Store from which answers are read, and not dropped.

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

    def drop(self, call: Call) -> None:
        """Drop nothing."""

    def note(self, key: str) -> Any | None:
        """Return the note; None if there is none."""
        return None if self.blank else super().note(key)

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

    def score(self, prompts: Sequence[Prompt], options: Sequence[Sequence[str]]) -> list[None]:
        """Count the prompts whose options are not scored yet, and return no scores."""
        calls = {call.key: call for call in self._back_end.option_calls(prompts, options)}
        for call in calls.values():
            if self._store.get(call) is None:
                self._store.counter.scored.add((call.revision, call.prompt_digest))
                self._count([call])
        return [None] * len(prompts)

    def _response(self, request: Request) -> Response:
        """Return the stored replies to the longest prompt that has some, and count what is missing."""
        first: list[Call] | None = None
        for prompt in self._back_end.prompts(request):
            calls = self._back_end.calls(request, prompt)
            kept = [self._back_end.kept(call) for call in calls]
            missing = [call for call, replies in zip(calls, kept, strict=True) if replies is None]
            first = missing if first is None else first
            if len(missing) < len(calls):
                self._count(missing)
                return Response(prompt, [reply for its in kept for reply in (its or (None,))])
            if self._store.blank:
                break
        self._count(first or [])
        return Response(request.prompt, [None] * len(request.draws))

    def _count(self, calls: Sequence[Call]) -> None:
        for call, size in self._back_end.sizes(calls) if calls else ():
            self._store.counter.add(call, size)
