"""A probe's prompts answered by a local model, each answer kept in the store as soon as it is there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lmkbc.models.answers import Store, answered
from lmkbc.models.base import Prompt
from lmkbc.models.call import Call
from lmkbc.models.causal.decode import Decoding
from lmkbc.models.causal.model import CausalModel

CHUNK = 1024
"""Prompts that are looked up, encoded and grouped by their shared beginnings at a time."""


@dataclass(frozen=True, slots=True)
class Local:
    """A causal model that goes on with texts, greedily. revision: what tells it from others of its name.

    A prompt longer than the model's window has no answer. store: None to keep nothing.
    """

    model: CausalModel
    name: str
    how: Decoding
    store: Store | None = None
    revision: str = ""

    def answers(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, str | None]]:
        """Yield (place, text), chunk by chunk, stored answers first; no text for a prompt that cannot be asked."""
        for start in range(0, len(prompts), CHUNK):
            texts = [prompt.text for prompt in prompts[start : start + CHUNK]]

            def ask(missing: list[int], texts: Sequence[str] = texts) -> Iterator[dict[int, dict[str, Any] | None]]:
                for index, (draw, *_) in self.model.complete([texts[place] for place in missing], self.how):
                    told = None if draw.text is None else {"text": draw.text, "finished": draw.finished}
                    yield {missing[index]: told}

            for place, answer in answered(self.store, [self._call(text) for text in texts], ask):
                yield start + place, answer and answer["text"]

    def _call(self, text: str) -> Call:
        sampling = {"max_tokens": self.how.max_tokens, "temperature": 0.0, "stops": list(self.how.stops)}
        return Call(model=self.name, prompt=text, revision=self.revision, sampling=sampling)
