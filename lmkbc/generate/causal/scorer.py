"""A local causal model as verification asks it: short texts, and the probabilities of words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lmkbc.generate.causal.decode import Decoding
from lmkbc.generate.causal.model import CausalModel


class CausalScorer:
    """Asks by completion, or as a chat of one turn. how: how texts are drawn; their length is the caller's."""

    def __init__(self, model: CausalModel, how: Decoding, *, chat: bool) -> None:
        self._model, self._how, self._chat = model, how, chat

    def texts(self, prompts: Sequence[str], max_tokens: int) -> list[list[str]]:
        """The draws of each prompt, up to the end of the line."""
        how = replace(self._how, max_tokens=max_tokens, stops=("\n",))
        found = dict(self._model.complete(self._put(prompts), how))
        return [[draw.text or "" for draw in found[place]] for place in range(len(prompts))]

    def log_probabilities(self, prompts: Sequence[str], options: Sequence[str]) -> list[list[float]]:
        """For each prompt, the log-probability of each word that may come next."""
        words = list(options) if self._chat else [f" {option}" for option in options]
        return self._model.log_probabilities(self._put(prompts), words)

    def _put(self, prompts: Sequence[str]) -> list[str]:
        return (
            [self._model.chat([{"role": "user", "content": one}]) for one in prompts] if self._chat else list(prompts)
        )
