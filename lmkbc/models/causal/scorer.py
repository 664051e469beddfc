"""A local causal model as verification asks it: short texts, and the probabilities of words, kept in the store."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lmkbc.models.causal.decode import Decoding
from lmkbc.models.causal.model import CausalModel
from lmkbc.models.store import Call, Store
from lmkbc.types import Notes

PORTION = 512
"""Prompts that are answered and kept at a time: a killed run loses no more, and their shared beginning is read once."""


class CausalScorer:
    """Asks by completion, or as a chat of one turn. how: how texts are drawn; their length is the caller's.

    name, identity: what the store knows the model as. notes: where what was asked is counted.
    """

    def __init__(
        self,
        model: CausalModel,
        how: Decoding,
        *,
        chat: bool,
        store: Store | None = None,
        name: str = "",
        identity: str = "",
        notes: Notes | None = None,
    ) -> None:
        self._model, self._how, self._chat = model, how, chat
        self._store, self._name, self._identity, self._notes = store, name, identity, notes or Notes()

    def texts(self, prompts: Sequence[str], max_tokens: int) -> list[list[str]]:
        """The draws of each prompt, up to the end of the line; draws that say nothing are left out."""
        how = replace(self._how, max_tokens=max_tokens, stops=("\n",))

        def ask(asked: Sequence[str]) -> list[list[str] | None]:
            found = dict(self._model.complete(asked, how))
            draws = [[draw.text or "" for draw in found[place]] for place in range(len(asked))]
            return [one if any(one) else None for one in draws]

        kept = self._kept(prompts, how.key, ask)
        return [[text for draw in draws or () if (text := draw.strip())] for draws in kept]

    def paragraphs(self, prompts: Sequence[str], max_tokens: int = 128) -> list[str | None]:
        """The greedy answer to each prompt, about a paragraph; None for a prompt that the window has no room for."""
        how = Decoding(max_tokens=max_tokens, stops=("\n\n",))

        def ask(asked: Sequence[str]) -> list[str | None]:
            found = dict(self._model.complete(asked, how))
            return [found[place][0].text for place in range(len(asked))]

        return self._kept(prompts, how.key, ask)

    def log_probabilities(self, prompts: Sequence[str], options: Sequence[str]) -> list[list[float]]:
        """For each prompt, the log-probability of each word that may come next."""
        words = list(options) if self._chat else [f" {option}" for option in options]

        def ask(asked: Sequence[str]) -> list[list[float | None] | None]:
            found = self._model.log_probabilities(asked, [words] * len(asked))  # JSON has no infinity
            told = [[p if math.isfinite(p) else None for p in row] for row in found]
            return [row if any(p is not None for p in row) else None for row in told]

        rows = self._kept(prompts, {"words": words}, ask)
        return [[-math.inf if p is None else p for p in row or [None] * len(words)] for row in rows]

    def _kept(
        self, prompts: Sequence[str], sampling: Mapping[str, Any], ask: Callable[[Sequence[str]], list[Any]]
    ) -> list[Any]:
        """What is asked for of each prompt, from the store where it is there; None, which is not kept, for nothing."""
        put = self._put(prompts)
        calls = [Call(model=self._name, revision=self._identity, prompt=text, sampling=sampling) for text in put]
        found = [self._store.get(call) if self._store else None for call in calls]
        missing = [place for place, one in enumerate(found) if one is None]
        with self._model.usage.added(self._notes.usage):
            self._model.replayed([text for text, one in zip(put, found, strict=True) if one is not None])
            for start in range(0, len(missing), PORTION):
                places = missing[start : start + PORTION]
                for place, answer in zip(places, ask([put[place] for place in places]), strict=True):
                    found[place] = answer
                if self._store:
                    self._store.put((calls[place], found[place]) for place in places if found[place] is not None)
        return found

    def _put(self, prompts: Sequence[str]) -> list[str]:
        return (
            [self._model.chat([{"role": "user", "content": one}]) for one in prompts] if self._chat else list(prompts)
        )
