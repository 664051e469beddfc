"""Decoding: the next token of every row until each has come to the end of its answer.

A row ends at a stop string or an end token, and then leaves the batch; one that ends at the budget is unfinished. The
tokens that a draw takes depend on its prompt, the seed and its number alone, never on what else is in the batch.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from lmkbc.errors import InputError
from lmkbc.generate.causal.branches import Branches
from lmkbc.generate.causal.prefixes import Tokens
from lmkbc.settings import checked


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How answers are drawn, as a recipe's plain data.

    max_tokens: tokens of an answer at most. temperature: 0 takes the likeliest token. top_p, top_k: only the likeliest
    tokens with that much probability in all, only so many of them (0: all). draws: answers per prompt.
    repetition_penalty: what the scores of tokens already seen are divided by (or multiplied, below 0), as in CTRL.
    """

    max_tokens: int = 64
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    draws: int = 1
    repetition_penalty: float = 1.0
    seed: int = 0

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Sampling:
        """Sampling from a recipe's table. InputError for a setting or value that makes no sense."""
        sampling = checked(cls, settings, "sampling")
        if sampling.max_tokens < 1 or sampling.draws < 1:
            raise InputError(
                f"sampling: max_tokens is {sampling.max_tokens} and draws {sampling.draws}: give 1 or more"
            )
        if sampling.temperature < 0 or not 0 < sampling.top_p <= 1 or sampling.top_k < 0:
            raise InputError("sampling: temperature and top_k cannot be negative, and top_p lies in (0, 1]")
        if sampling.repetition_penalty <= 0:
            raise InputError(f"sampling: repetition_penalty is {sampling.repetition_penalty}: give more than 0")
        return sampling


@dataclass(frozen=True, slots=True)
class Completion:
    """One draw: its text up to the stop string, and whether it came to an end by itself.

    text: None where the model was not asked, since the prompt leaves no room in its window.
    """

    text: str | None
    finished: bool = True


class _Row:
    """One draw while it grows."""

    def __init__(self, prompt: Tokens, draw: int, sampling: Sampling, room: int) -> None:
        digest = hashlib.sha256(repr((sampling.seed, draw, prompt)).encode()).digest()
        self.random = random.Random(digest)
        self.seen = dict.fromkeys(prompt) if sampling.repetition_penalty != 1 else {}
        self.budget = min(sampling.max_tokens, room)
        self.tokens: list[int] = []
        self.completion: Completion | None = None

    def take(self, token: int, ends: Collection[int], read: Callable[[list[int]], Completion]) -> None:
        """Add a token; the row is complete at an end token, at a stop string, or when its budget is spent."""
        if token in ends:
            self.completion = Completion(read(self.tokens).text)
            return
        self.tokens.append(token)
        self.seen[token] = None
        done = read(self.tokens)
        self.completion = done if done.finished or len(self.tokens) == self.budget else None


def decode(
    branches: Branches, prompts: Sequence[Tokens], shared: int, sampling: Sampling, room: Sequence[int],
    ends: Collection[int], read: Callable[[list[int]], Completion],
) -> list[list[Completion]]:  # fmt: skip
    """The draws of each prompt. shared: tokens that the branches hold already; room: each answer's tokens at most.

    ends: end tokens. read: from an answer's tokens to its text, finished where it holds a stop string.
    """
    logits = branches.read([prompt[shared:] for prompt in prompts], [1] * len(prompts))
    logits = logits.repeat_interleave(sampling.draws, 0)
    branches.fork(sampling.draws)
    rows = [
        _Row(prompt, draw, sampling, left)
        for prompt, left in zip(prompts, room, strict=True)
        for draw in range(sampling.draws)
    ]
    live = rows
    while True:
        for row, token in zip(live, _pick(logits, live, sampling), strict=True):
            row.take(token, ends, read)
        kept = [index for index, row in enumerate(live) if row.completion is None]
        live = [live[index] for index in kept]
        if not live:
            break
        logits = branches.step(kept, [row.tokens[-1] for row in live])
    done = [row.completion for row in rows if row.completion is not None]
    return [done[start : start + sampling.draws] for start in range(0, len(done), sampling.draws)]


def _pick(logits: torch.Tensor, rows: Sequence[_Row], sampling: Sampling) -> list[int]:
    """One token per row: the likeliest, or by the row's own random number on the cumulative distribution."""
    chosen: list[int]
    if sampling.repetition_penalty != 1:
        logits, penalty = logits.clone(), sampling.repetition_penalty
        for scores, row in zip(logits, rows, strict=True):
            seen = torch.tensor(list(row.seen), device=logits.device)
            scores[seen] = torch.where(scores[seen] < 0, scores[seen] * penalty, scores[seen] / penalty)
    if sampling.temperature == 0:
        chosen = logits.argmax(-1).tolist()
        return chosen
    scores, order = (logits.double() / sampling.temperature).sort(stable=True, dim=-1, descending=True)
    if sampling.top_k:
        scores, order = scores[:, : sampling.top_k], order[:, : sampling.top_k]
    shares = scores.softmax(-1)
    shares = shares.where(shares.cumsum(-1) - shares < sampling.top_p, 0)
    reached = shares.cumsum(-1)
    draws = torch.tensor([row.random.random() for row in rows], dtype=reached.dtype, device=reached.device)
    places = torch.searchsorted(reached, draws[:, None] * reached[:, -1:])
    chosen = order.gather(-1, places)[:, 0].tolist()
    return chosen
