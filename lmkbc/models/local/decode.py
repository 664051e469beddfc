"""Decoding: the next token of every row until each has come to the end of its answer.

A row ends at a stop string, an end token or the end of its list, and then leaves the batch, which waiting prompts join
as it empties: a step takes hardly longer for many rows than for one. A row that ends at the
budget, or that only repeats itself, is unfinished. The tokens that a draw takes depend on its prompt, the seed and its
number alone, never on what else is in the batch.
"""

from __future__ import annotations

import hashlib
import random
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

import torch

from lmkbc.errors import InputError
from lmkbc.models.base import Sampling
from lmkbc.models.local.branches import Branches
from lmkbc.models.local.endings import Repeats
from lmkbc.models.local.prefixes import Tokens
from lmkbc.settings import checked

ANSWER = 32
"""Tokens that an answer is taken to have when it is asked whether there is room for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """Settings of decoding.

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
        """Return the settings that identify stored answers. `lists` is left out: text behind a list never counts."""
        return {name: value for name, value in asdict(self).items() if name != "lists"}

    @classmethod
    def of(cls, sampling: Sampling, stops: Sequence[str], *, lists: bool = False) -> Decoding:
        """From a recipe's sampling; `extra` may hold top_k and repetition_penalty. InputError for senseless values.

        Without a temperature, several draws are sampled at 1, and a single one is greedy. stops, lists: of the prompt's
        style.
        """
        given = {name: getattr(sampling, name) for name in ("temperature", "top_p", "max_tokens", "seed")}
        if given["temperature"] is None and sampling.samples > 1:
            given["temperature"] = 1.0
        table = {name: value for name, value in given.items() if value is not None} | dict(sampling.extra)
        one = checked(cls, table | {"draws": sampling.samples, "logprobs": sampling.logprobs}, "sampling")
        if one.max_tokens < 1 or one.temperature < 0 or not 0 < one.top_p <= 1 or one.top_k < 0:
            raise InputError("sampling: max_tokens is at least 1, temperature and top_k at least 0, top_p in (0, 1]")
        if one.repetition_penalty <= 0:
            raise InputError(f"sampling: repetition_penalty is {one.repetition_penalty}: give more than 0")
        return replace(one, stops=tuple(stops if sampling.stop is None else sampling.stop), lists=lists)


@dataclass(frozen=True, slots=True)
class Completion:
    """Draw: its text up to the stop string, and whether it came to an end by itself.

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


@dataclass(frozen=True, slots=True)
class Asked:
    """A prompt to be answered. place: the caller's. prefix: what it begins with as others do. room: for its answer."""

    place: int
    prompt: Tokens
    prefix: Tokens
    room: int


Read = Callable[[list[int]], Completion]
"""From an answer's tokens to what they say, finished where that holds a stop string."""


class _Row:
    """Draw while it grows."""

    def __init__(self, asked: Asked, draw: int, how: Decoding) -> None:
        digest = hashlib.sha256(repr((how.seed, draw, asked.prompt)).encode()).digest()
        self.asked = asked
        self.random = random.Random(digest)
        self.seen = dict.fromkeys(asked.prompt) if how.repetition_penalty != 1 else {}
        self.budget = min(how.max_tokens, asked.room)
        self.tokens: list[int] = []
        self.logprobs: list[float] = []
        self.completion: Completion | None = None
        self._repeats = Repeats()

    def take(self, token: int, ends: Collection[int], read: Read) -> None:
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
    branches: Branches, prompts: Iterable[Asked], how: Decoding, most: int, ends: Collection[int], read: Read
) -> Iterator[tuple[Asked, list[Completion]]]:
    """Yield the draws of each prompt as they end. Waiting prompts join as soon as half of `most` is free.

    most: columns that prompts and answers have beyond the longest prefix; a prompt alone may have more. ends: end
    tokens.
    """
    waiting = deque(prompts)
    rows: list[_Row] = []  # as the branches have them
    draws: dict[int, list[_Row]] = {}  # of prompts that are not answered
    while waiting or draws:
        fresh = _admitted(waiting, [own[0].asked for own in draws.values()], how, most)
        with torch.inference_mode():
            if fresh:
                logits = branches.read([one.prompt for one in fresh], [one.prefix for one in fresh], [1] * len(fresh))
                logits = logits.repeat_interleave(how.draws, 0)
                branches.fork(how.draws)
                draws |= {one.place: [_Row(one, how.first + draw, how) for draw in range(how.draws)] for one in fresh}
                growing = [row for one in fresh for row in draws[one.place]]
                rows = [*rows, *growing]
            else:
                kept = [place for place, row in enumerate(rows) if row.completion is None]
                rows = growing = [rows[place] for place in kept]
                logits = branches.step(kept, [row.tokens[-1] for row in rows])
            _grow(growing, logits, how, ends, read)
        for place in dict.fromkeys(row.asked.place for row in growing if row.completion):
            done = [
                replace(row.completion, logprobs=spelt(row.tokens, row.logprobs, read))
                for row in draws[place]
                if row.completion
            ]
            if len(done) == how.draws:
                yield draws.pop(place)[0].asked, done


def _admitted(waiting: deque[Asked], live: list[Asked], how: Decoding, most: int) -> list[Asked]:
    """Prompts that there is room for, taken from those that wait: many at a time, or none."""
    fresh: list[Asked] = []
    if not live or 2 * _columns(live, how) <= most:
        while waiting and (not (live or fresh) or _columns([*live, *fresh, waiting[0]], how) <= most):
            fresh.append(waiting.popleft())
    return fresh


def _columns(prompts: Sequence[Asked], how: Decoding) -> int:
    """Columns that some prompts and their answers take, but for the longest prefix."""
    heads = {id(one.prefix): len(one.prefix) for one in prompts}
    answers = how.draws * min(how.max_tokens, ANSWER)
    return (
        sum(len(one.prompt) - len(one.prefix) + answers for one in prompts) + sum(heads.values()) - max(heads.values())
    )


def _grow(rows: Sequence[_Row], logits: torch.Tensor, how: Decoding, ends: Collection[int], read: Read) -> None:
    """Add a token to each row."""
    taken = _pick(logits, rows, how)
    if how.logprobs:
        told = logits.log_softmax(-1).gather(-1, torch.tensor(taken, device=logits.device)[:, None])[:, 0].tolist()
        for row, logprob in zip(rows, told, strict=True):
            row.logprobs.append(logprob)
    for row, token in zip(rows, taken, strict=True):
        row.take(token, ends, read)


def spelt(tokens: list[int], logprobs: Sequence[float], read: Read) -> tuple[tuple[str, float], ...]:
    """Return the text that each token of an answer added, with its log-probability, up to the stop string."""
    told, pieces = 0, []
    for end, logprob in zip(range(1, len(tokens) + 1), logprobs, strict=False):
        text = read(tokens[:end]).text or ""
        whole = text if end == len(tokens) else text.rstrip("\ufffd")  # a character may take several tokens
        pieces.append((whole[told:], logprob))
        told = max(told, len(whole))
    return tuple(pieces)


def _pick(logits: torch.Tensor, rows: Sequence[_Row], how: Decoding) -> list[int]:
    """Return a token per row: the likeliest, or by the row's own random number on the cumulative distribution."""
    if how.repetition_penalty != 1:
        logits, penalty = logits.clone(), how.repetition_penalty
        for scores, row in zip(logits, rows, strict=True):
            seen = torch.tensor(list(row.seen), device=logits.device)
            scores[seen] = torch.where(scores[seen] < 0, scores[seen] * penalty, scores[seen] / penalty)
    if how.temperature == 0:
        return cast(list[int], logits.argmax(-1).tolist())
    scores, order = (logits.double() / how.temperature).sort(stable=True, dim=-1, descending=True)
    if how.top_k:
        scores, order = scores[:, : how.top_k], order[:, : how.top_k]
    shares = scores.softmax(-1)
    shares = shares.where(shares.cumsum(-1) - shares < how.top_p, 0)
    reached = shares.cumsum(-1)
    draws = torch.tensor([row.random.random() for row in rows], dtype=reached.dtype, device=reached.device)
    places = torch.searchsorted(reached, draws[:, None] * reached[:, -1:])
    return cast(list[int], order.gather(-1, places)[:, 0].tolist())
