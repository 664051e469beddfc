"""Dry run: answers are looked up in the store, and missing ones are counted instead of requested."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmkbc.models.answers import Shape, Store
from lmkbc.models.call import Call
from lmkbc.models.store_place import Place


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
        if self.blank:
            self.place, self.damaged = place, Counter()
        else:
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
