"""Short questions to a language model: texts, paragraphs, and probabilities of the next word."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lmkbc.models.base import LanguageModel, Message, Prompt, Reply, Request, Sampling, single
from lmkbc.models.thoughts import answer_of

FIRST_WORD = Sampling(temperature=0.0, max_tokens=4, logprobs=True)
"""Sampling of a request for the alternatives at the first word of an answer."""


def texts(
    model: LanguageModel,
    prompts: Sequence[str],
    max_tokens: int,
    draws: int = 1,
    temperature: float = 0.0,
    seed: int = 0,
    stops: tuple[str, ...] = ("\n",),
) -> list[list[str]]:
    """Return the draws of each prompt, each a line behind the thoughts, without blank or failed ones.

    seed: for back ends that support it. stops: () where a model may think, in several lines, before its line.
    """
    sampling = Sampling(temperature=temperature, max_tokens=max_tokens, samples=draws, seed=seed)
    rows = _replies(model, prompts, sampling, stops)
    said = [[(answer_of(reply.text) or "").strip() for reply in row if reply] for row in rows]
    return [[line for text in row if (line := text.partition("\n")[0].strip())] for row in said]


def paragraphs(
    model: LanguageModel, prompts: Sequence[str], max_tokens: int | None = None, stop: str = "\n\n"
) -> list[str | None]:
    """Return the greedy answer to each prompt, about a paragraph; None for a failed one.

    stop: text that ends a completion; "" for none.
    """
    sampling = Sampling(temperature=0.0, max_tokens=max_tokens)
    rows = _replies(model, prompts, sampling, (stop,) if stop else ())
    return [reply.text if reply else None for (reply,) in rows]


def word_log_probabilities(model: LanguageModel, prompts: Sequence[str], words: Sequence[str]) -> list[list[float]]:
    """Return, for each prompt, the log-probability of each word as the next one; -inf if unknown."""
    rows = model.score([_plain(text) for text in prompts], [words] * len(prompts)) if prompts else ()
    return [[-math.inf] * len(words) if row is None else list(row) for row in rows]


def _replies(
    model: LanguageModel, prompts: Sequence[str], sampling: Sampling, stops: tuple[str, ...]
) -> list[Sequence[Reply | None]]:
    requests = [plain_request(text, sampling, stops) for text in prompts]
    found = dict(model.complete({place: single(one) for place, one in enumerate(requests)})) if requests else {}
    return [found[place] for place in range(len(requests))]


def plain_request(text: str, sampling: Sampling, stops: tuple[str, ...] = ()) -> Request:
    """Return the request for all draws of a short question."""
    return Request(_plain(text), tuple(range(sampling.samples)), sampling, stops)


def _plain(text: str) -> Prompt:
    return Prompt((), (Message("user", text),), "plain")
