"""Candidate ranking over a server: log-probabilities of given texts, by one of two methods, and their storage.

`_Echo` serves vLLM and older completion servers, which echo a prompt with the log-probabilities of its tokens. `_Walk`
serves llama.cpp, which reports only the next token, with any number of alternatives. If it is forced to write a token,
it reports the token's original log-probability. The options of a prompt are therefore requested as a tree of tokens,
each position once, and the prompt cache keeps the tokens before it.
"""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmkbc.http import CallError
from lmkbc.models.answers import KeptOptions, Scored, Store
from lmkbc.models.base import Call, Size
from lmkbc.models.budget import Budget
from lmkbc.models.prefixes import Option, Tokens, common, with_options
from lmkbc.models.server.address import Server
from lmkbc.models.server.body import TokenReport
from lmkbc.models.server.limits import length_of
from lmkbc.models.server.refusal import RejectedError, ServerError, TooLongError
from lmkbc.models.server.session import Session
from lmkbc.notes import Notes

ALTERNATIVES = 1000
"""Alternatives requested from llama.cpp at a time; more take longer than a request for a single token."""

MOST_ALTERNATIVES = 100_000
"""Alternatives if a token cannot be forced: nearly all tokens, in ten MB and half a second."""

BIAS = 100
"""Bias on a token's score that forces the token: the largest that the API allows."""

SURE = 1.01
"""Upper bound of the sum of all probabilities at a position, with a margin for rounding."""

GREEDY = {"max_tokens": 1, "temperature": 0}


@dataclass(slots=True)
class _OptionLikelihoods:
    """Scores of a prompt: each option's log-probability, None if unknown.

    prompt_tokens, completion_tokens: of all requests for them, as the server counts.
    """

    logs: list[float | None]
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def count(self, report: TokenReport) -> TokenReport:
        """Count a report's tokens, and return the report."""
        self.prompt_tokens += report.prompt_tokens
        self.completion_tokens += report.completion_tokens
        return report

    def add(self, steps: Sequence[float | None]) -> None:
        """Add an option, from the log-probabilities of its tokens."""
        finite = [step for step in steps if step is not None and step > -math.inf]
        self.logs.append(math.fsum(finite) if len(finite) == len(steps) else None)


async def way_of(session: Session, text: str) -> _Echo | _Walk:
    """Return the method that a server supports, tested on a text. Raise ServerError if it supports none."""
    try:
        echoed = await session.token_report(_echo(session, text))
        logs = [logprob for _, logprob in echoed.tokens[1:]]
        if echoed.text.startswith(text) and logs and None not in logs:
            return _Echo()
    except RejectedError as error:  # it does not support the field
        if isinstance(error, TooLongError):
            raise
    if walk := await _Walk.over(session, text):
        return walk
    raise ServerError(
        f"{session.client.server.base_url} returns no log-probabilities of a given text, which candidate "
        "ranking needs: ask for answers, as --system few-shot does, or serve the model with llama.cpp or vLLM, or "
        "leave the base URL out and name a model of this machine"
    )


class _Echo:
    """The server echoes prompts with log-probabilities: one request per option."""

    async def prepare(self, session: Session, prompts: Sequence[str], options: Sequence[Sequence[str]]) -> None:
        """Do nothing; no preparation is needed."""

    async def scores(self, session: Session, prompt: str, options: Sequence[str]) -> _OptionLikelihoods:
        """Return the scores of the options. The report on the prompt alone shows where its tokens end."""
        row = _OptionLikelihoods([])
        start = [token for token, _ in _given(row.count(await session.token_report(_echo(session, prompt))))]
        for option in options:
            whole = _given(row.count(await session.token_report(_echo(session, prompt + option))))
            first = common(start, [token for token, _ in whole])
            row.add([logprob for _, logprob in whole[first:]] if first else [None])
        return row


def _echo(session: Session, text: str) -> dict[str, Any]:
    """Return a request to echo a text. One token is generated, since some servers refuse a limit of 0."""
    return {"model": session.client.server.model, "prompt": text, "echo": True, "logprobs": 1, **GREEDY}


def _given(report: TokenReport) -> Sequence[tuple[str, float | None]]:
    return report.tokens[: max(len(report.tokens) - report.completion_tokens, 0)]


class _Walk:
    """The options of a prompt as a tree of tokens, whose positions are requested in the cache's order.

    plain: a token that can be written anywhere. llama.cpp reports nothing about a token that ends within a character.
    slots: prompts in progress at a time; more would evict each other from the cache.
    """

    def __init__(self, plain: int, slots: int) -> None:
        self._plain, self._slots = plain, slots
        self._options: dict[tuple[str, tuple[str, ...]], list[Option]] = {}

    @classmethod
    async def over(cls, session: Session, text: str) -> _Walk | None:
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
        slots = await session.client.slots()
        return cls(min(made), session.limits.concurrency if slots is None else slots)

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

    async def scores(self, session: Session, prompt: str, options: Sequence[str]) -> _OptionLikelihoods:
        """Return the scores of the options, from the tree of tokens of a prompt."""
        row = _OptionLikelihoods([])
        paths = self._options[prompt, tuple(options)]
        wanted: defaultdict[Tokens, set[int]] = defaultdict(set)
        for whole, first in paths:
            for place in range(first, len(whole)):
                wanted[whole[:place]].add(whole[place])
        report: dict[Tokens, Mapping[int, float]] = {}
        async with self._free:
            for tokens in sorted(wanted):  # in this order, the cache holds most tokens before each position
                if tokens:
                    report[tokens] = await self._reported(session, row, tokens, wanted[tokens])
        for whole, first in paths:
            steps = [report.get(whole[:place], {}).get(whole[place]) for place in range(first, len(whole))]
            row.add(steps if first else [None])
        return row

    async def _reported(
        self, session: Session, row: _OptionLikelihoods, place: Tokens, wanted: Collection[int]
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
            tokens = await session.client.tokens(text, special=True)
        if not tokens:
            raise RejectedError("the server does not return its tokens")
        return text, tuple(tokens)

    return dict(await asyncio.gather(*map(split, texts)))


class OptionScorer:
    """Scores options with a server that returns log-probabilities, several prompts at a time.

    notes: get the usage, and remarks about missing scores. Raise ServerError for a server without log-probabilities.
    """

    def __init__(
        self,
        server: Server,
        store: Store,
        open_session: Callable[[], Session],
        notes: Notes | None = None,
        budget: Budget | None = None,
    ) -> None:
        self._server, self._store, self._open_session = server, store, open_session
        self._notes, self._budget = notes or Notes(), budget or Budget()
        self._way: _Echo | _Walk | None = None
        self._stopped: str | None = None

    def scores(self, calls: Sequence[Call]) -> list[list[float] | None]:
        """Return the log-probability of each option of each call as the answer to its prompt.

        None stands for a prompt whose call failed, or that leaves no room for one of its options. A log-probability
        that the server does not report is -inf.
        """
        distinct = {call.key: call for call in calls}
        answers = KeptOptions(self._store, list(distinct.values()))
        for place, key in enumerate(distinct):
            scored = answers.stored.get(place, Scored({}))
            self._used(scored, from_store=place in answers.stored)
            self._budget.used(key, (scored.prompt_tokens, scored.completion_tokens))
        self._notes.usage |= self._budget.spent
        if answers.asked:
            self._ask(answers)
        by_key = dict(zip(distinct, answers.rows(), strict=True))
        return [by_key[call.key] for call in calls]

    def _used(self, scored: Scored, from_store: int = 0) -> None:
        self._notes.used(
            prompt_tokens=scored.prompt_tokens, completion_tokens=scored.completion_tokens, from_store=from_store
        )

    def _ask(self, answers: KeptOptions) -> None:
        """Ask for missing scores, and keep each as soon as it arrives."""
        missing = list(answers.asked.values())
        session = self._open_session()
        session.stopped = session.stopped or self._stopped
        texts: dict[str, str] = {}
        found = 0

        async def before() -> None:
            if session.stopped is None:
                try:
                    texts.update([(call.key, await self._text(session, call)) for call in missing])
                    self._way = self._way or await way_of(session, min(texts.values(), key=len))
                    await self._way.prepare(session, list(texts.values()), list(map(_options, missing)))
                except TooLongError as error:  # even the shortest prompt
                    session.failed(error)
                    session.too_long = len(missing)
                except CallError as error:  # an error of the server, not of a prompt
                    session.failed(error)
                    session.stopped = session.stopped or str(error)

        async def ask(place: int) -> tuple[int, Scored | None]:
            if session.stopped is None and self._way is not None:
                try:
                    call = answers.asked[place]
                    row = await self._way.scores(session, texts[call.key], _options(call))
                    if all(log is None for log in row.logs):
                        raise CallError("the server returns no score of any option", transient=False)
                    scores = dict(zip(call.sampling["options"], row.logs, strict=True))
                    return place, Scored(scores, row.prompt_tokens, row.completion_tokens)
                except CallError as error:
                    session.failed(error)
            return place, None

        try:
            for place, scored in session.answers(list(answers.asked), ask, before):
                if scored is not None:
                    found += 1
                    answers.keep({place: scored})
                    self._used(scored)
        finally:
            self._stopped = session.stopped
        if session.too_long:
            self._notes.remark(
                f"prompts whose candidates are ranked exceed the context of {self._server.base_url} ({session.why()}): "
                "show fewer examples, or have it read more tokens"
            )
        if found + session.too_long < len(missing):
            self._notes.stopped |= session.stopped is not None
            self._notes.remark(
                f"{self._server.base_url} has not returned the log-probabilities of all prompts ({session.why()}); run "
                "again to go on"
            )

    async def _text(self, session: Session, call: Call) -> str:
        """Return a prompt, rendered by the server's chat template.

        Raise ServerError if the server does not return it.
        """
        if isinstance(call.prompt, str):
            return call.prompt
        if (rendered := await session.client.rendered(call.prompt)) is not None:
            return rendered
        raise ServerError(
            f"{self._server.base_url} does not return prompts rendered by its chat template, which candidate ranking "
            "needs: use form = 'completion'"
        )


def _options(call: Call) -> list[str]:
    """Return the options of a call as they follow its prompt."""
    return [f" {text}" if isinstance(call.prompt, str) else text for text in call.sampling["options"]]


def option_size(call: Call) -> Size:
    """Return the estimated size of the requests for a prompt's options, as for a server that echoes prompts."""
    requests = 1 + len(_options(call))
    given = requests * length_of(call)[0] + len("".join(_options(call))) // 4
    return Size(requests, given, requests, estimated=True)
