"""Decoding: the next token of every row until each has come to the end of its answer.

A row ends at a stop string, an end token or the end of its list, and then leaves the batch; one that ends at the
budget, or that only repeats itself, is unfinished. The tokens that a draw takes depend on its prompt, the seed and its
number alone, never on what else is in the batch.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from lmkbc.errors import InputError
from lmkbc.models.base import Sampling
from lmkbc.models.causal.branches import Branches
from lmkbc.models.causal.endings import Repeats
from lmkbc.models.causal.prefixes import Tokens
from lmkbc.settings import checked


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """How answers are decoded.

    max_tokens: tokens of an answer at most. temperature: 0 takes the likeliest token. top_p, top_k: only the likeliest
    tokens with that much probability in all, only so many of them (0: all). draws: answers per prompt, first: the
    number of the first of them, since a draw's number decides what it takes.
    repetition_penalty: what the scores of tokens already seen are divided by (or multiplied, below 0), as in CTRL.
    stops: what ends an answer, besides the model's end token. lists: whether an answer that is a list ends where that
    is closed. logprobs: whether those of the tokens are told.
    """

    max_tokens: int = 64
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    draws: int = 1
    repetition_penalty: float = 1.0
    first: int = 0
    seed: int = 0
    stops: tuple[str, ...] = ()
    lists: bool = False
    logprobs: bool = False

    @property
    def key(self) -> dict[str, Any]:
        """What the store tells answers apart by. Not `lists`: what came behind a list was never part of the answer."""
        return {name: value for name, value in asdict(self).items() if name != "lists"}

    @classmethod
    def of(cls, sampling: Sampling, stops: Sequence[str], *, lists: bool = False) -> Decoding:
        """From a recipe's sampling; `extra` may hold top_k and repetition_penalty. InputError for senseless values.

        Without a temperature, several draws are sampled at 1, and a single one is greedy. stops, lists: of the prompt's
        style.
        """
        given = {name: getattr(sampling, name) for name in ("temperature", "top_p", "max_tokens", "seed")}
        if given["temperature"] is None and sampling.draws > 1:
            given["temperature"] = 1.0
        table = {name: value for name, value in given.items() if value is not None} | dict(sampling.extra)
        one = checked(cls, table | {"draws": sampling.draws, "logprobs": sampling.logprobs}, "sampling")
        if one.max_tokens < 1 or one.temperature < 0 or not 0 < one.top_p <= 1 or one.top_k < 0:
            raise InputError("sampling: max_tokens is at least 1, temperature and top_k at least 0, top_p in (0, 1]")
        if one.repetition_penalty <= 0:
            raise InputError(f"sampling: repetition_penalty is {one.repetition_penalty}: give more than 0")
        return replace(one, stops=tuple(stops if sampling.stop is None else sampling.stop), lists=lists)


@dataclass(frozen=True, slots=True)
class Completion:
    """One draw: its text up to the stop string, and whether it came to an end by itself.

    text: None where the model was not asked, since the prompt leaves no room in its window. logprobs: what each token
    adds to the text, and its log-probability, where asked for. looped: whether it was stopped since it only repeated
    itself. tokens: how many were decoded, the end token included. prompt_tokens: that were read for this draw, none
    for a further one of the same prompt.
    """

    text: str | None
    finished: bool = True
    logprobs: tuple[tuple[str, float], ...] = ()
    looped: bool = False
    tokens: int = 0
    prompt_tokens: int = 0


class _Row:
    """One draw while it grows."""

    def __init__(self, prompt: Tokens, draw: int, how: Decoding, room: int) -> None:
        digest = hashlib.sha256(repr((how.seed, draw, prompt)).encode()).digest()
        self.random = random.Random(digest)
        self.seen = dict.fromkeys(prompt) if how.repetition_penalty != 1 else {}
        self.budget = min(how.max_tokens, room)
        self.tokens: list[int] = []
        self.logprobs: list[float] = []
        self.completion: Completion | None = None
        self._repeats = Repeats()

    def take(self, token: int, ends: Collection[int], read: Callable[[list[int]], Completion]) -> None:
        """Add a token; the row is complete at an end token or stop string, in a loop, or when its budget is spent."""
        if token in ends:
            self.completion = Completion(read(self.tokens).text, tokens=len(self.tokens) + 1)
            return
        self.tokens.append(token)
        self.seen[token] = None
        done = read(self.tokens)
        looped = self._repeats.take(token) and not done.finished
        if done.finished or looped or len(self.tokens) == self.budget:
            self.completion = replace(done, looped=looped, tokens=len(self.tokens))


def decode(
    branches: Branches,
    prompts: Sequence[Tokens],
    prefixes: Sequence[int],
    how: Decoding,
    room: Sequence[int],
    ends: Collection[int],
    read: Callable[[list[int]], Completion],
) -> list[list[Completion]]:
    """The draws of each prompt. prefixes: the number of each one's; room: each answer's tokens at most.

    ends: end tokens. read: from an answer's tokens to its text, finished where it holds a stop string.
    """
    logits = branches.read(prompts, prefixes, [1] * len(prompts))
    logits = logits.repeat_interleave(how.draws, 0)
    branches.fork(how.draws)
    rows = [
        _Row(prompt, how.first + draw, how, left)
        for prompt, left in zip(prompts, room, strict=True)
        for draw in range(how.draws)
    ]
    live = rows
    while True:
        taken = _pick(logits, live, how)
        if how.logprobs:
            told = logits.log_softmax(-1).gather(-1, torch.tensor(taken, device=logits.device)[:, None])[:, 0].tolist()
            for row, logprob in zip(live, told, strict=True):
                row.logprobs.append(logprob)
        for row, token in zip(live, taken, strict=True):
            row.take(token, ends, read)
        kept = [index for index, row in enumerate(live) if row.completion is None]
        live = [live[index] for index in kept]
        if not live:
            break
        logits = branches.step(kept, [row.tokens[-1] for row in live])
    done = [row.completion for row in rows if row.completion is not None]
    if how.logprobs:
        done = [replace(one, logprobs=tuple(_spelt(row, read))) for one, row in zip(done, rows, strict=True)]
    return [done[start : start + how.draws] for start in range(0, len(done), how.draws)]


def _spelt(row: _Row, read: Callable[[list[int]], Completion]) -> Iterator[tuple[str, float]]:
    """What each token of a row added to its text, up to the stop string."""
    told = 0
    for end, logprob in zip(range(1, len(row.tokens) + 1), row.logprobs, strict=False):
        text = read(row.tokens[:end]).text or ""
        whole = text if end == len(row.tokens) else text.rstrip("\ufffd")  # a character may take several tokens
        yield whole[told:], logprob
        told = max(told, len(whole))


def _pick(logits: torch.Tensor, rows: Sequence[_Row], how: Decoding) -> list[int]:
    """One token per row: the likeliest, or by the row's own random number on the cumulative distribution."""
    chosen: list[int]
    if how.repetition_penalty != 1:
        logits, penalty = logits.clone(), how.repetition_penalty
        for scores, row in zip(logits, rows, strict=True):
            seen = torch.tensor(list(row.seen), device=logits.device)
            scores[seen] = torch.where(scores[seen] < 0, scores[seen] * penalty, scores[seen] / penalty)
    if how.temperature == 0:
        chosen = logits.argmax(-1).tolist()
        return chosen
    scores, order = (logits.double() / how.temperature).sort(stable=True, dim=-1, descending=True)
    if how.top_k:
        scores, order = scores[:, : how.top_k], order[:, : how.top_k]
    shares = scores.softmax(-1)
    shares = shares.where(shares.cumsum(-1) - shares < how.top_p, 0)
    reached = shares.cumsum(-1)
    draws = torch.tensor([row.random.random() for row in rows], dtype=reached.dtype, device=reached.device)
    places = torch.searchsorted(reached, draws[:, None] * reached[:, -1:])
    chosen = order.gather(-1, places)[:, 0].tolist()
    return chosen
