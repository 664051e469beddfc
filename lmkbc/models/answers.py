"""The loop over the store: answers that are kept, else asked for, and then kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from lmkbc.models.call import Call
from lmkbc.models.store import Store

Usable = Callable[[Any], bool]
"""Function that returns whether an answer is usable."""
Ask = Callable[[list[int]], Iterable[Mapping[int, Any]]]
"""Function from the places of calls without an answer to batches, each a mapping of places to answers."""


class KeptAnswers:
    """Answers to some calls: those of the store, and new ones, which are kept as soon as they arrive.

    store: None to keep nothing.
    shape: type of an answer.
    usable: function that says whether an answer may be kept; a kept one that is unusable counts as missing.
    found: the answer to each call; None if there is none.
    missing: the places of calls that still lack an answer.
    """

    def __init__(
        self, store: Store | None, calls: Sequence[Call], shape: type | Any = Any, usable: Usable | None = None
    ) -> None:
        self._store, self._calls, self._shape, self._usable = store, calls, shape, usable
        self.found: list[Any] = [self._looked_up(call) for call in calls]
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

    def asked(self, ask: Ask) -> Iterator[tuple[int, Any, bool]]:
        """Yield (place, answer, whether it was in the store) per call, those of the store first.

        Each batch is committed before its answers are yielded. None is a failure. For example::

            def ask(missing: list[int]) -> Iterator[dict[int, Reply | None]]:
                for start in range(0, len(missing), 512):
                    places = missing[start : start + 512]
                    yield dict(zip(places, model.complete([prompts[place] for place in places]), strict=True))

            answers = KeptAnswers(store, calls, Reply, lambda reply: reply.is_answer)
            replies = {place: reply for place, reply, _ in answers.asked(ask)}
        """
        missing = self.missing
        yield from ((place, answer, True) for place, answer in enumerate(self.found) if answer is not None)
        for batch in ask(missing) if missing else ():
            yield from ((place, answer, False) for place, answer in self.keep(batch).items())

    def _looked_up(self, call: Call) -> Any:
        answer = self._store.get(call, self._shape) if self._store else None
        return answer if answer is None or self._usable is None or self._usable(answer) else None
