"""A local causal model as other steps ask it: short texts, and the probabilities of words and options, stored."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lmkbc.models.answers import Call, Store
from lmkbc.models.base import Prompt
from lmkbc.models.causal.decode import Decoding
from lmkbc.models.causal.model import CausalModel
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

        def complete(places: Sequence[int]) -> list[list[str] | None]:
            completions = dict(self._model.complete([texts[place] for place in places], how))
            draws = [[draw.text or "" for draw in completions[row]] for row in range(len(places))]
            return [row if any(row) else None for row in draws]

        texts = self._put(prompts)
        kept = self._kept(texts, [how.key] * len(texts), complete)
        return [[text for draw in draws or () if (text := draw.strip())] for draws in kept]

    def paragraphs(self, prompts: Sequence[str], max_tokens: int = 128) -> list[str | None]:
        """The greedy answer to each prompt, about a paragraph; None for a prompt that the window has no room for."""
        how = Decoding(max_tokens=max_tokens, stops=("\n\n",))

        def complete(places: Sequence[int]) -> list[str | None]:
            completions = dict(self._model.complete([texts[place] for place in places], how))
            return [completions[row][0].text for row in range(len(places))]

        texts = self._put(prompts)
        return self._kept(texts, [how.key] * len(texts), complete)

    def log_probabilities(self, prompts: Sequence[str], options: Sequence[str]) -> list[list[float]]:
        """For each prompt, the log-probability of each word that may come next."""
        words = list(options) if self._chat else [f" {option}" for option in options]
        texts = self._put(prompts)
        return self._likelihoods(texts, [words] * len(texts), "words")

    def option_scores(self, prompts: Sequence[Prompt], options: Sequence[Sequence[str]]) -> list[list[float]]:
        """The log-probability that each prompt is answered by each of its own options; -inf where it cannot be told."""
        texts = [self._model.text(prompt) for prompt in prompts]
        spaced = [
            [f" {text}" if prompt.form == "completion" else text for text in row]
            for prompt, row in zip(prompts, options, strict=True)
        ]
        rows = self._likelihoods(texts, spaced, "options")
        if lost := sum(bool(row) and max(row) == -math.inf for row in rows):
            self._notes.remark(
                f"{self._name}: {lost} of {len(rows)} prompts of a closed list exceed the model's window: show fewer "
                "examples"
            )
        return rows

    def lengths(self, options: Sequence[str]) -> list[int]:
        """Of how many tokens each option is, as it stands after a prompt."""
        return [max(len(tokens), 1) for tokens in self._model.encode([f" {option}" for option in options])]

    def _likelihoods(self, texts: Sequence[str], options: Sequence[Sequence[str]], key: str) -> list[list[float]]:
        """Log-probabilities of each text's options. key: what the store calls the options."""

        def score(places: Sequence[int]) -> list[list[float | None] | None]:
            rows = self._model.log_probabilities([texts[at] for at in places], [options[at] for at in places])
            finite = [[p if math.isfinite(p) else None for p in row] for row in rows]  # JSON has no infinity
            return [row if any(p is not None for p in row) else None for row in finite]

        kept = self._kept(texts, [{key: list(row)} for row in options], score)
        return [
            [-math.inf if p is None else p for p in row or [None] * len(choices)]
            for row, choices in zip(kept, options, strict=True)
        ]

    def _kept(
        self,
        texts: Sequence[str],
        sampling: Sequence[Mapping[str, Any]],
        answer: Callable[[Sequence[int]], list[Any]],
    ) -> list[Any]:
        """The answer to each text, from the store where it is there; None, which is not kept, for nothing.

        answer: from the places of texts to what the model makes of these.
        """
        calls = [
            Call(model=self._name, revision=self._identity, prompt=text, sampling=how)
            for text, how in zip(texts, sampling, strict=True)
        ]
        answers = [self._store.get(call) if self._store else None for call in calls]
        missing = [place for place, stored in enumerate(answers) if stored is None]
        with self._model.usage.added(self._notes.usage):
            self._model.replayed([text for text, stored in zip(texts, answers, strict=True) if stored is not None])
            for start in range(0, len(missing), PORTION):
                places = missing[start : start + PORTION]
                for place, fresh in zip(places, answer(places), strict=True):
                    answers[place] = fresh
                if self._store:
                    self._store.put((calls[place], answers[place]) for place in places if answers[place] is not None)
        return answers

    def _put(self, prompts: Sequence[str]) -> list[str]:
        return (
            [self._model.chat([{"role": "user", "content": text}]) for text in prompts] if self._chat else list(prompts)
        )
