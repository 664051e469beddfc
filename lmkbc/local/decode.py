"""Decoding: the next token of every row, until all answers are complete.

A row ends at a stop string, the end of its turn or of its list, and leaves the batch. Waiting prompts join as the
batch empties, since a step takes hardly longer for many rows than for one. A row that spends its budget, or repeats
itself, is unfinished. The tokens of a draw depend only on its prompt, the seed and its number, not on the batch.
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
from lmkbc.local.branches import Branches
from lmkbc.local.grammar import Forms, limited
from lmkbc.models.base import Sampling
from lmkbc.models.endings import Repeats
from lmkbc.models.prefixes import Tokens
from lmkbc.settings import checked

ANSWER = 32
"""Assumed tokens of an answer, to decide whether there is room for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """Settings of decoding.

    max_tokens: maximum number of tokens of an answer.
    temperature: 0 takes the likeliest token.
    top_p: total probability of the likeliest tokens to sample from.
    top_k: number of these tokens; 0 for all.
    draws: answers per prompt.
    first: number of the first draw, which selects its random numbers.
    repetition_penalty: divisor of the scores of tokens already seen (a factor for scores below 0), as in CTRL.
    stops: texts that end an answer, besides the model's end token.
    lists: whether an answer ends with its list.
    logprobs: whether to return the tokens' log-probabilities.
    schema: JSON schema of an answer, as text; "" for any text. An answer whose beginning the prompt holds is free.
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
    schema: str = ""

    @property
    def key(self) -> dict[str, Any]:
        """Return the settings that identify stored answers. `lists` is left out: text after a list never counts."""
        left_out = ("lists", *(() if self.schema else ("schema",)))
        return {name: value for name, value in asdict(self).items() if name not in left_out}

    @classmethod
    def of(cls, sampling: Sampling, stops: Sequence[str], *, lists: bool = False, schema: str = "") -> Decoding:
        """Return the settings from a recipe's sampling; `extra` may hold top_k and repetition_penalty.

        Without a temperature, several draws are sampled at 1, and a single one is greedy. stops, lists, schema: of the
        prompt's style. Raise InputError for wrong values.
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
        return replace(one, stops=tuple(stops if sampling.stop is None else sampling.stop), lists=lists, schema=schema)


@dataclass(frozen=True, slots=True)
class Room:
    """Maximum number of answers at a time, and of their tokens.

    tokens: of prompts and answers after their prefixes, with each row as long as the longest. A single prompt may
    have more.
    """

    rows: int
    tokens: int

    def taken(self, rows: int, longest: int) -> float:
        """Return the share that rows take, the longest of which has this many tokens."""
        return max(rows / self.rows, rows * longest / self.tokens)


@dataclass(frozen=True, slots=True)
class Completion:
    """Draw: its text up to the stop string, and whether it is complete.

    text: None if the prompt leaves no room in the model's window.
    logprobs: the text that each token adds, and the token's log-probability, if requested.
    looped: whether it was stopped because it repeated itself.
    tokens: number of decoded tokens, the end token included.
    prompt_tokens: tokens read for this draw; 0 for further draws of the same prompt.
    """

    text: str | None
    finished: bool = True
    logprobs: tuple[tuple[str, float], ...] = ()
    looped: bool = False
    tokens: int = 0
    prompt_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Asked:
    """A prompt to answer.

    place: the caller's index. prefix: its shared prefix. room: maximum tokens of the answer. seed: of its draws.
    begun: the beginning of the answer that the prompt holds.
    """

    place: int
    prompt: Tokens
    prefix: Tokens
    room: int
    seed: int
    begun: str = ""


Read = Callable[[list[int], str], Completion]
"""Function from an answer's tokens and its beginning in the prompt to its text, finished if that holds an end."""


class _Row:
    """Draw while it grows."""

    def __init__(self, asked: Asked, draw: int, how: Decoding, forms: Forms) -> None:
        digest = hashlib.sha256(repr((asked.seed, draw, asked.prompt)).encode()).digest()
        self.asked = asked
        self.random = random.Random(digest)
        self.seen = dict.fromkeys(asked.prompt) if how.repetition_penalty != 1 else {}
        self.budget = min(how.max_tokens, asked.room)
        self.tokens: list[int] = []
        self.logprobs: list[float] = []
        self.completion: Completion | None = None
        self.form = forms.of(how.schema) if how.schema and not asked.begun else None
        self._repeats = Repeats()

    def take(self, token: int, ends: Collection[int], read: Read) -> None:
        """Add a token. An end token, a stop string, a loop or a spent budget completes the row."""
        if token in ends:
            self.completion = Completion(read(self.tokens, self.asked.begun).text, tokens=len(self.tokens) + 1)
            return
        self.tokens.append(token)
        self.seen[token] = None
        done = read(self.tokens, self.asked.begun)
        if self.form and self.form.take(token):
            done = replace(done, finished=True)
        looped = self._repeats.take(token) and not done.finished
        if done.finished or looped or len(self.tokens) == self.budget:
            self.completion = replace(done, looped=looped, tokens=len(self.tokens))


def decode(
    branches: Branches,
    prompts: Iterable[Asked],
    how: Decoding,
    room: Room,
    ends: Collection[int],
    read: Read,
    forms: Forms,
) -> Iterator[tuple[Asked, list[Completion]]]:
    """Yield the draws of each prompt when they are complete. Waiting prompts join when half of the room is free.

    ends: end tokens. forms: of answers, by their schema.
    """
    waiting = deque(prompts)
    rows: list[_Row] = []  # in the order of the branches
    draws: dict[int, list[_Row]] = {}  # by unanswered prompt
    while waiting or draws:
        fresh = _admitted(waiting, [series[0].asked for series in draws.values()], how, room)
        with torch.inference_mode():
            if fresh:
                logits = branches.read([one.prompt for one in fresh], [one.prefix for one in fresh])
                logits = logits.repeat_interleave(how.draws, 0)
                branches.fork(how.draws)
                draws |= {
                    one.place: [_Row(one, how.first + draw, how, forms) for draw in range(how.draws)] for one in fresh
                }
                growing = [row for one in fresh for row in draws[one.place]]
                rows = [*rows, *growing]
            else:
                kept = [place for place, row in enumerate(rows) if row.completion is None]
                rows = growing = [rows[place] for place in kept]
                logits = branches.step(kept, [row.tokens[-1] for row in rows])
            _grow(growing, logits, how, ends, read)
        for place in dict.fromkeys(row.asked.place for row in growing if row.completion):
            done = [
                replace(row.completion, logprobs=spelt(row.tokens, row.logprobs, read, row.asked.begun))
                for row in draws[place]
                if row.completion
            ]
            if len(done) == how.draws:
                yield draws.pop(place)[0].asked, done


def _admitted(waiting: deque[Asked], live: list[Asked], how: Decoding, room: Room) -> list[Asked]:
    """Return the waiting prompts for which there is room: many at a time, or none."""
    fresh: list[Asked] = []
    rows, longest = how.draws * len(live), max((_length(one, how) for one in live), default=0)
    if 2 * room.taken(rows, longest) <= 1:
        while waiting:
            rows, longest = rows + how.draws, max(longest, _length(waiting[0], how))
            if rows > how.draws and room.taken(rows, longest) > 1:
                break
            fresh.append(waiting.popleft())
    return fresh


def _length(one: Asked, how: Decoding) -> int:
    """Return the tokens after the prefix that a prompt and its answer take."""
    return len(one.prompt) - len(one.prefix) + min(how.max_tokens, ANSWER)


def _grow(rows: Sequence[_Row], logits: torch.Tensor, how: Decoding, ends: Collection[int], read: Read) -> None:
    """Add a token to each row."""
    logits = limited(logits, [row.form for row in rows])
    taken = _pick(logits, rows, how)
    if how.logprobs:
        chosen = logits.log_softmax(-1).gather(-1, torch.tensor(taken, device=logits.device)[:, None])[:, 0].tolist()
        for row, logprob in zip(rows, chosen, strict=True):
            row.logprobs.append(logprob)
    for row, token in zip(rows, taken, strict=True):
        row.take(token, ends, read)


def spelt(tokens: list[int], logprobs: Sequence[float], read: Read, begun: str = "") -> tuple[tuple[str, float], ...]:
    """Return the text that each token of an answer adds, with its log-probability, up to the stop string."""
    shown, pieces = 0, []
    for end, logprob in zip(range(1, len(tokens) + 1), logprobs, strict=False):
        text = read(tokens[:end], begun).text or ""
        whole = text if end == len(tokens) else text.rstrip("\ufffd")  # a character may take several tokens
        pieces.append((whole[shown:], logprob))
        shown = max(shown, len(whole))
    return tuple(pieces)


def _pick(logits: torch.Tensor, rows: Sequence[_Row], how: Decoding) -> list[int]:
    """Return a token per row: the likeliest, or one sampled with the row's own random number."""
    if how.repetition_penalty != 1:
        logits, penalty = logits.clone(), how.repetition_penalty
        for scores, row in zip(logits, rows, strict=True):
            seen = torch.tensor(list(row.seen), device=logits.device)
            scores[seen] = torch.where(scores[seen] < 0, scores[seen] * penalty, scores[seen] / penalty)
    if how.temperature == 0:
        return cast(list[int], logits.argmax(-1).tolist())
    scores, order = logits.sort(stable=True, dim=-1, descending=True)
    if how.top_k:
        scores, order = scores[:, : how.top_k], order[:, : how.top_k]
    shares = (scores.double() / how.temperature).softmax(-1)
    shares = shares.where(shares.cumsum(-1) - shares < how.top_p, 0)
    reached = shares.cumsum(-1)
    draws = torch.tensor([row.random.random() for row in rows], dtype=reached.dtype, device=reached.device)
    places = torch.searchsorted(reached, draws[:, None] * reached[:, -1:])
    return cast(list[int], order.gather(-1, places)[:, 0].tolist())
