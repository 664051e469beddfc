"""The draws of a local causal model that were committed before, so that only what is lacking is asked."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lmkbc.models.answers import Call, Store
from lmkbc.models.base import Prompt, Reply
from lmkbc.models.causal.decode import Decoding


class KeptDraws:
    """What a store holds of a model; nothing where there is no store. name, identity: what it knows the model as."""

    def __init__(self, store: Store | None, name: str, identity: str) -> None:
        self._store, self._name, self._identity = store, name, identity

    @property
    def remarks(self) -> Sequence[str]:
        """What a person should know of the store."""
        return self._store.remarks if self._store else ()

    def of(self, prompt: Prompt, how: Decoding) -> list[Reply]:
        """The draws of a prompt that were committed before, up to the first that was not; no answer is dropped."""
        found: list[Reply] = []
        if self._store is None:
            return found
        for call in self._calls(prompt, how):
            reply: Reply | None = self._store.get(call, Reply)
            if reply is not None and not reply.is_answer:
                self._store.drop(call)
                reply = None
            if reply is None:
                break
            found.append(reply)
        return found

    def with_new(self, prompt: Prompt, how: Decoding, replies: Sequence[Reply | None]) -> list[Reply | None]:
        """The draws, committed, with another worker's in place of one that came after it."""
        if self._store is None:
            return list(replies)
        pairs = list(zip(self._calls(prompt, how), replies, strict=True))
        answers = ((call, msgspec.to_builtins(reply)) for call, reply in pairs if reply and reply.is_answer)
        there = self._store.put(answers)
        first = {call.key: self._store.get(call, Reply) for call, _ in pairs if call.key in there}
        return [first.get(call.key) or reply for call, reply in pairs]

    def _calls(self, prompt: Prompt, how: Decoding) -> list[Call]:
        sampling = how.key
        first, draws, seed = (sampling.pop(name) for name in ("first", "draws", "seed"))
        return [
            Call(
                model=self._name,
                prompt=prompt.text if prompt.form == "completion" else prompt.messages(),
                revision=self._identity,
                sampling=sampling,
                seed=seed if how.temperature else None,
                draw=draw,
            )
            for draw in range(first, first + draws)
        ]
