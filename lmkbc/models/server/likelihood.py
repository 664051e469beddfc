"""Log-probabilities of given texts from a server: two methods, and the choice between them.

`Echo` serves vLLM and older completion servers, which echo a prompt with the log-probabilities of its tokens. `Walk`
serves llama.cpp, which reports only the next token, with any number of alternatives. If it is forced to write a token,
it reports the token's original log-probability. The options of a prompt are therefore requested as a tree of tokens,
each position once, and the prompt cache keeps the tokens before it.
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
from lmkbc.models.local.prefixes import Option, Tokens, common, with_options
from lmkbc.models.server import served
from lmkbc.models.server.body import TokenReport
from lmkbc.models.server.refusal import RejectedError, ServerError, TooLongError
from lmkbc.models.server.session import Session

ALTERNATIVES = 1000
"""Alternatives requested from llama.cpp at a time; more take longer than a request for a single token."""

MOST_ALTERNATIVES = 100_000
"""Alternatives if a token cannot be forced: nearly all tokens, in ten MB and half a second."""

BIAS = 100
"""Bias on a token's score that forces the token: the largest that the API allows."""

SURE = 1.01
"""Upper bound of the sum of all probabilities at a position, with a margin for rounding."""

GREEDY = {"max_tokens": 1, "temperature": 0}


class OptionLikelihoods(msgspec.Struct, omit_defaults=True):
    """Scores of a prompt: each option's log-probability, None if unknown, and its length in tokens.

    prompt_tokens, completion_tokens: of all requests for them, as the server counts.
    """

    logs: list[float | None]
    lengths: list[int]
    prompt_tokens: int = 0
    completion_tokens: int = 0


async def way_of(session: Session, text: str) -> Echo | Walk:
    """Return the method that a server supports, tested on a text. Raise ServerError if it supports none."""
    try:
        echoed = await session.token_report(_echo(session, text))
        logs = [logprob for _, logprob in echoed.tokens[1:]]
        if echoed.text.startswith(text) and logs and None not in logs:
            return Echo()
    except RejectedError as error:  # it does not support the field
        if isinstance(error, TooLongError):
            raise
    if walk := await Walk.over(session, text):
        return walk
    raise ServerError(
        f"{session.client.server.base_url} returns no log-probabilities of a given text, which candidate "
        "ranking needs: serve the model with llama.cpp or vLLM, or leave the base URL out and name a model of this "
        "machine"
    )


class Echo:
    """The server echoes prompts with log-probabilities: one request per option."""

    async def prepare(self, session: Session, prompts: Sequence[str], options: Sequence[Sequence[str]]) -> None:
        """Do nothing; no preparation is needed."""

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
    """Return a request to echo a text. One token is generated, since some servers refuse a limit of 0."""
    return {"model": session.client.server.model, "prompt": text, "echo": True, "logprobs": 1, **GREEDY}


def _given(report: TokenReport) -> Sequence[tuple[str, float | None]]:
    return report.tokens[: max(len(report.tokens) - report.completion_tokens, 0)]


class Walk:
    """The options of a prompt as a tree of tokens, whose positions are requested in the cache's order.

    plain: a token that can be written anywhere. llama.cpp reports nothing about a token that ends within a character.
    slots: prompts in progress at a time; more would evict each other from the cache.
    """

    def __init__(self, plain: int, slots: int) -> None:
        self._plain, self._slots = plain, slots
        self._options: dict[tuple[str, tuple[str, ...]], list[Option]] = {}

    @classmethod
    async def over(cls, session: Session, text: str) -> Walk | None:
        """Return the method for a server; None if it does not report original probabilities of forced tokens.

        In that case two forced tokens would both have probability 1.
        """
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
        """Let the server tokenise all texts, in rounds, since the first results determine further texts."""
        known: dict[str, Tokens] = {}
        unknown: dict[str, None] = {}

        def encode(texts: Sequence[str]) -> list[Tokens]:
            unknown.update(dict.fromkeys(text for text in texts if text not in known))
            return [known.get(text, ()) for text in texts]

        while (found := with_options(encode, prompts, options)) and unknown:
            known.update(await _tokens(session, unknown))
            unknown.clear()
        self._options = {(prompt, tuple(row)): one for prompt, row, one in zip(prompts, options, found, strict=True)}
        self._free = asyncio.Semaphore(max(self._slots, 1))  # belongs to the current event loop

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
            for tokens in sorted(wanted):  # in this order, the cache holds most tokens before each position
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
        """Return log-probabilities of tokens at a position: likely tokens in one request, others one by one."""
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
    """Return the request for the token after `tokens`. made: the token that the server is forced to write."""
    bias = {"logit_bias": {str(made): BIAS}}
    return {"model": session.client.server.model, "prompt": tokens, "logprobs": alternatives, **GREEDY, **bias}


async def _tokens(session: Session, texts: Iterable[str]) -> dict[str, Tokens]:
    """Return texts in the server's tokens, as in prompts. Raise RejectedError if the server does not tokenise."""
    few = asyncio.Semaphore(session.limits.concurrency)

    async def split(text: str) -> tuple[str, Tokens]:
        async with few:
            split = await session.client.metadata("../tokenize", served.Tokens, {"content": text, "add_special": True})
        if split is None or not split.tokens:
            raise RejectedError("the server does not return its tokens")
        return text, tuple(split.tokens)

    return dict(await asyncio.gather(*map(split, texts)))


class _Row:
    """Scores of a prompt's options, one by one; options that exceed the server's context have none."""

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
        """Continue if an option exceeds the server's context."""
        try:
            yield
        except TooLongError as error:
            self._refused = error

    def add(self, steps: Sequence[float | None], length: int) -> None:
        """Add an option, from the log-probabilities of its tokens."""
        finite = [step for step in steps if step is not None and step > -math.inf]
        self._scores.logs.append(math.fsum(finite) if len(finite) == len(steps) else None)
        self._scores.lengths.append(max(length, 1))

    def scored(self) -> OptionLikelihoods:
        """Return the scores of all options. Raise CallError if all are unknown."""
        if all(log is None for log in self._scores.logs):
            raise self._refused or CallError("the server returns no score of any option", transient=False)
        return self._scores
