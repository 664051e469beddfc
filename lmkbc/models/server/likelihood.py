"""Log-probabilities of given texts from a server: two ways, and the choice between them.

vLLM and older completion servers echo a prompt with the log-probabilities of its tokens. llama.cpp tells those of the
next token alone, but of as many as are asked for, and of a token that it is made to write the one that it had before:
so the options of a prompt are asked for as a tree of tokens, each place once, and its prompt cache keeps what came
before.
"""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from lmkbc.http import CallError
from lmkbc.models.local.options import Option, with_options
from lmkbc.models.local.prefixes import Tokens, common
from lmkbc.models.server import served
from lmkbc.models.server.body import TokenReport
from lmkbc.models.server.refusal import RejectedError, ServerError, TooLongError
from lmkbc.models.server.session import Session

ALTERNATIVES = 1000
"""Next tokens that llama.cpp is asked to tell at a time; more take it longer than asking for a token alone."""

MOST_ALTERNATIVES = 100_000
"""Those that it is asked for where a token cannot be asked for alone: nearly all, in ten MB and half a second."""

BIAS = 100
"""Bias on a token's score that forces the token: the most that the API's definition allows."""

SURE = 1.01
"""More than all tokens of a place have together, as far as a server reckons."""

GREEDY = {"max_tokens": 1, "temperature": 0}


class OptionLikelihoods(msgspec.Struct, omit_defaults=True):
    """Scores of a prompt: each option's log-probability, None where it is unknown, and its length in tokens.

    The tokens are those of all requests that it took, as the server counts them.
    """

    logs: list[float | None]
    lengths: list[int]
    prompt_tokens: int = 0
    completion_tokens: int = 0


async def way_of(session: Session, text: str) -> Echo | Walk:
    """Return the way that a server supports, tried on a text. ServerError if it supports none."""
    try:
        echoed = await session.token_report(_echo(session, text))
        logs = [logprob for _, logprob in echoed.tokens[1:]]
        if echoed.text.startswith(text) and logs and None not in logs:
            return Echo()
    except RejectedError as error:  # it takes no such field
        if isinstance(error, TooLongError):
            raise
    if walk := await Walk.over(session, text):
        return walk
    raise ServerError(
        f"{session.client.server.base_url} tells no log-probabilities of a text that it is given, which candidate "
        "ranking needs: serve the model with llama.cpp or vLLM, or leave the base URL out and name a model of this "
        "machine"
    )


class Echo:
    """The server repeats what it is given, with log-probabilities: a request for each option."""

    async def prepare(self, session: Session, prompts: Sequence[str], options: Sequence[Sequence[str]]) -> None:
        """Nothing is the same."""

    async def scores(self, session: Session, prompt: str, options: Sequence[str]) -> OptionLikelihoods:
        """Return the scores of the options. The report on the prompt alone shows where its tokens end."""
        row = _Row()
        start = [token for token, _ in _given(row.count(await session.token_report(_echo(session, prompt))))]
        for option in options:
            steps: Sequence[float | None] = [None]
            length = 1
            with row.room():
                whole = _given(row.count(await session.token_report(_echo(session, prompt + option))))
                first = common(start, [token for token, _ in whole])
                length = len(whole) - first
                if first:
                    steps = [logprob for _, logprob in whole[first:]]
            row.add(steps, length)
        return row.scored()


def _echo(session: Session, text: str) -> dict[str, Any]:
    """Return a request to echo a text. A token is generated, since some servers do not take a limit of 0."""
    return {"model": session.client.server.model, "prompt": text, "echo": True, "logprobs": 1, **GREEDY}


def _given(report: TokenReport) -> Sequence[tuple[str, float | None]]:
    return report.tokens[: max(len(report.tokens) - report.completion_tokens, 0)]


class Walk:
    """The options of a prompt as a tree of tokens, whose places the server is asked for in the order of its cache.

    plain: a token that can be written anywhere. llama.cpp tells nothing of one that ends within a character. slots:
    prompts that are asked about at a time; with more, one would drive another out of the cache.
    """

    def __init__(self, plain: int, slots: int) -> None:
        self._plain, self._slots = plain, slots
        self._options: dict[tuple[str, tuple[str, ...]], list[Option]] = {}

    @classmethod
    async def over(cls, session: Session, text: str) -> Walk | None:
        """None where the server does not tell what a token had that it is made to write: two cannot both be certain."""
        try:
            tokens = await _tokens(session, [text, *"ab"])
            made = {tokens[letter][-1] for letter in "ab"}
            report = [await session.token_report(_next(session, tokens[text], 1, token)) for token in made]
        except RejectedError as error:
            if isinstance(error, TooLongError):
                raise
            return None
        known = all(one.chosen in made for one in report)
        if len(made) < 2 or not known or sum(math.exp(one.likeliest[one.chosen or 0]) for one in report) > SURE:
            return None
        props = await session.client.metadata("../props", served.Props) or served.Props()
        return cls(min(made), session.limits.concurrency if props.total_slots is None else props.total_slots)

    async def prepare(self, session: Session, prompts: Sequence[str], options: Sequence[Sequence[str]]) -> None:
        """Have the server split all texts into tokens: round by round, since the first splits tell what else to ask."""
        known: dict[str, Tokens] = {}
        unknown: dict[str, None] = {}

        def encode(texts: Sequence[str]) -> list[Tokens]:
            unknown.update(dict.fromkeys(text for text in texts if text not in known))
            return [known.get(text, ()) for text in texts]

        while (found := with_options(encode, prompts, options)) and unknown:
            known.update(await _tokens(session, unknown))
            unknown.clear()
        self._options = {(prompt, tuple(row)): one for prompt, row, one in zip(prompts, options, found, strict=True)}
        self._free = asyncio.Semaphore(max(self._slots, 1))  # of the event loop that asks about these prompts

    async def scores(self, session: Session, prompt: str, options: Sequence[str]) -> OptionLikelihoods:
        """Return the scores of the options, from the tree of tokens of a prompt."""
        row = _Row()
        paths = self._options[prompt, tuple(options)]
        wanted: defaultdict[Tokens, set[int]] = defaultdict(set)
        for whole, first in paths:
            for place in range(first, len(whole)):
                wanted[whole[:place]].add(whole[place])
        report: dict[Tokens, Mapping[int, float]] = {}
        room = math.inf
        async with self._free:
            for tokens in sorted(wanted):  # so that the server has read most of what comes before each place
                if 0 < len(tokens) < room:
                    with row.room():
                        report[tokens] = await self._reported(session, row, tokens, wanted[tokens])
                    room = room if tokens in report else len(tokens)
        for whole, first in paths:
            steps = [report.get(whole[:place], {}).get(whole[place]) for place in range(first, len(whole))]
            row.add(steps if first else [None], len(whole) - first)
        return row.scored()

    async def _reported(
        self, session: Session, row: _Row, place: Tokens, wanted: Collection[int]
    ) -> Mapping[int, float]:
        """Return the log-probabilities of tokens at a place: likely tokens at once, each other token by itself."""
        found: dict[int, float] = {}

        async def ask(alternatives: int, made: int) -> TokenReport:
            report = row.count(await session.token_report(_next(session, place, alternatives, made)))
            found.update(report.likeliest)
            return report

        if len(wanted) > 1:
            await ask(ALTERNATIVES, self._plain)
        for token in sorted(wanted):
            if token not in found and (await ask(1, token)).chosen != token:
                for alternatives in (ALTERNATIVES, MOST_ALTERNATIVES):
                    if token not in found:
                        await ask(alternatives, self._plain)
        return found


def _next(session: Session, tokens: Tokens, alternatives: int, made: int) -> dict[str, Any]:
    """Return the request for the token after some others. made: the token that the server has to write."""
    bias = {"logit_bias": {str(made): BIAS}}
    return {"model": session.client.server.model, "prompt": tokens, "logprobs": alternatives, **GREEDY, **bias}


async def _tokens(session: Session, texts: Iterable[str]) -> dict[str, Tokens]:
    """Texts in the server's tokens, as it reads prompts. RejectedError where it does not tell them."""
    few = asyncio.Semaphore(session.limits.concurrency)

    async def split(text: str) -> tuple[str, Tokens]:
        async with few:
            split = await session.client.metadata("../tokenize", served.Tokens, {"content": text, "add_special": True})
        if split is None or not split.tokens:
            raise RejectedError("the server does not tell its tokens")
        return text, tuple(split.tokens)

    return dict(await asyncio.gather(*map(split, texts)))


class _Row:
    """Results about a prompt, step by step; options that exceed the server's context stay open."""

    def __init__(self) -> None:
        self._scores = OptionLikelihoods([], [])
        self._refused: TooLongError | None = None

    def count(self, report: TokenReport) -> TokenReport:
        """Count a report's tokens, and return the report."""
        self._scores.prompt_tokens += report.prompt_tokens
        self._scores.completion_tokens += report.completion_tokens
        return report

    @contextmanager
    def room(self) -> Iterator[None]:
        """Go on where the server has no room for an option."""
        try:
            yield
        except TooLongError as error:
            self._refused = error

    def add(self, steps: Sequence[float | None], length: int) -> None:
        """Add an option, by the log-probabilities of its tokens."""
        finite = [step for step in steps if step is not None and step > -math.inf]
        self._scores.logs.append(math.fsum(finite) if len(finite) == len(steps) else None)
        self._scores.lengths.append(max(length, 1))

    def scored(self) -> OptionLikelihoods:
        """Return the scores of all options. CallError where every score is unknown."""
        if all(log is None for log in self._scores.logs):
            raise self._refused or CallError("the server tells nothing of any option", transient=False)
        return self._scores
