"""A dry run: answers are looked up in the store, and what it lacks is counted in place of being asked."""

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
    """Counts of a dry run's calls, each call once. answer_tokens: the limit of an answer, or a guess without a limit.

    estimated: requests whose tokens no tokenizer counted. stored: answers that the store has.
    """

    requests: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0
    estimated: int = 0
    stored: int = 0
    _keys: set[str] = field(default_factory=set, repr=False)

    def add(self, key: str, prompt: int, answer: int, *, requests: int = 1, estimated: bool = False) -> None:
        """Count a call of so many tokens, unless it was counted before: by then it would be in the store."""
        if key not in self._keys:
            self._keys.add(key)
            self.requests += requests
            self.prompt_tokens += prompt
            self.answer_tokens += answer
            self.estimated += requests * estimated

    def taken(self) -> CallCounter:
        """Return the counts so far and begin new ones; calls that were counted are not counted again."""
        counts = CallCounter(self.requests, self.prompt_tokens, self.answer_tokens, self.estimated, self.stored)
        self.requests = self.prompt_tokens = self.answer_tokens = self.estimated = self.stored = 0
        return counts


class DryStore(Store):
    """A store that keeps nothing and drops nothing. blank: there is no file, and none is made.

    fresh: all is asked anew, so that nothing is looked up.
    """

    def __init__(self, place: Place, counter: CallCounter, *, fresh: bool = False) -> None:
        self.counter, self.blank = counter, isinstance(place, Path) and not place.exists()
        self._fresh = fresh
        if self.blank:
            self.place, self.damaged = place, Counter()
        else:
            super().__init__(place)

    def get(self, call: Call, shape: type[Shape] | Any = Any) -> Shape | Any | None:
        """Return the stored answer, None if there is none."""
        answer = None if self.blank or self._fresh else super().get(call, shape)
        self.counter.stored += answer is not None
        return answer

    def put(self, answers: Iterable[tuple[Call, Any]]) -> frozenset[str]:  # noqa: ARG002 -- the store's signature
        """Keep nothing."""
        return frozenset()

    def drop(self, call: Call) -> None:
        """Keep it as it is."""

    def note(self, key: str) -> Any | None:
        """Return what was noted, None if nothing was."""
        return None if self.blank else super().note(key)

    def set_note(self, key: str, note: Any) -> None:
        """Note nothing."""

    def close(self) -> None:
        """Release the file."""
        if not self.blank:
            super().close()
