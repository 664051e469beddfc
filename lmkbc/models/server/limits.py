"""Limits on requests to a server: concurrency, rates, retries, and the context that prompt and answer share."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, TypeVar

from lmkbc.errors import counted
from lmkbc.http import CallError, LateError, Pace, RequestLimits
from lmkbc.models.base import Call, Reply
from lmkbc.models.budget import Budget
from lmkbc.models.server.address import Server
from lmkbc.models.server.body import TokenReport
from lmkbc.models.server.refusal import RejectedError, ServerError, TooLong, UnreadError, answer_limit

LENGTH = ("max_tokens", "max_completion_tokens")
"""Fields that limit an answer's length: in general, and for the API's newer models."""

TIMEOUT = "--timeout SECONDS or limits.timeout"
"""Option and setting that give a request more time, for messages."""

LONG = 20.0
"""Seconds after which a call waits long; half of the time for one attempt, if that is no longer. Reports double it."""

PATIENCE = 20
"""Failed queries in a row after which a run stops asking."""

ROUNDS = 2
"""Number of late attempts for each call in flight, without any answer of the server, after which a run ends."""

GUESSED_ANSWER = 256
"""Estimated tokens of an answer without a length limit."""
SLACK = 8
"""Tokens that are kept free beside a prompt and its answer, since the prompt's are estimated."""

Answer = TypeVar("Answer", Reply, TokenReport)
Result = TypeVar("Result")
log = logging.getLogger(__name__)
Body = Mapping[str, Any]
Ask = Callable[[Body], Awaitable[Sequence[Answer]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits(RequestLimits):
    """Limits of one server, as in a recipe. They do not influence answers, so they are no part of the store's keys.

    concurrency: requests in flight.
    timeout: seconds for one attempt. For the others, see `RequestLimits`.
    """

    concurrency: int = 8
    timeout: float = 120.0

    REMOVED: ClassVar[Mapping[str, str]] = {
        "attempts": "write total_wait, the seconds that retries may take; 0 for no retry",
        "first_wait": "write total_wait, the seconds that retries may take; short ones begin sooner",
    }

    def __post_init__(self) -> None:
        """Raise ValueError for a wrong value."""
        for limit in fields(self):
            least = 0 if limit.name == "total_wait" else math.ulp(0.0)
            if (value := getattr(self, limit.name)) is not None and not least <= value < math.inf:
                raise ValueError(f"{limit.name} is {value}: give a finite number above 0")


def estimate(body: Mapping[str, Any]) -> tuple[int, int]:
    """Return the estimated prompt and answer tokens of a request: four characters per token, answers at their longest.

    A prompt that is given as tokens is counted exactly.
    """
    prompt = body.get("prompt", "")
    text = sum(len(turn["content"]) for turn in body["messages"]) if "messages" in body else len(prompt)
    answer = limit_of(body) or GUESSED_ANSWER
    return (text // 4 + 1 if isinstance(prompt, str) else text), answer * body.get("n", 1)


def length_of(call: Call) -> tuple[int, int]:
    """Return the estimated tokens of a prompt, and of its answer at its longest."""
    return estimate({"prompt" if isinstance(call.prompt, str) else "messages": call.prompt} | dict(call.sampling))


def most_tokens(prompt: str | Sequence[Mapping[str, str]]) -> int:
    """Return an upper bound of a prompt's tokens, in vocabularies as small as 50,000, with the marks of chat turns."""
    turns = [prompt] if isinstance(prompt, str) else [turn["content"] for turn in prompt]
    return sum(len(turn.encode()) * 2 // 5 + 8 for turn in turns) + 32


def limit_of(body: Mapping[str, Any]) -> int | None:
    """Return the maximum number of tokens of an answer that a request asks for; None without a limit."""
    return next((body[name] for name in LENGTH if body.get(name)), None)


@dataclass(slots=True)
class Window:
    """Context of a server.

    tokens: maximum number of tokens of prompt and answer together; None if unknown.
    answer: maximum number of tokens of an answer; None if unknown.
    whole: whether the server refuses a request unless an answer fits at its full length; else the answer only ends
    early. The length that is asked for is then reduced to what fits.
    scale: real tokens per estimated token.
    reduced: the length of an answer that was to be asked for, and the least that was asked for; None if they agree.
    """

    tokens: int | None = None
    answer: int | None = None
    whole: bool = False
    scale: float = 1.0
    reduced: tuple[int, int] | None = None

    def learn_from(self, call: Call, lengths: TooLong | None) -> None:
        """Take the numbers from a refusal, if it has any."""
        if lengths is not None:
            self.tokens = lengths.window or self.tokens
            if lengths.prompt is not None:
                self.learn(call, lengths.prompt)

    def learn_limit(self, body: dict[str, Any], refused: RejectedError) -> bool:
        """Take from a refusal how long an answer may be; return whether a shorter one may be accepted."""
        asked, prompt = limit_of(body), estimate(body)[0]
        limit = None if asked is None else answer_limit(asked, refused.said)
        if asked is None or limit is None:
            return False
        if limit.window is None:
            learnt = replace(self, answer=limit.answer)
        else:
            again = self.whole and self.tokens == limit.window
            scale = limit.prompt / prompt if limit.prompt else self.scale * (1.25 if again else 1.0)
            learnt = replace(self, tokens=limit.window, whole=True, scale=scale)
        left = limit_of(learnt.fitted(body))
        if left is None or not (1 if limit.window is None else min(asked, GUESSED_ANSWER)) <= left < asked:
            return False
        self.answer, self.tokens, self.whole, self.scale = learnt.answer, learnt.tokens, learnt.whole, learnt.scale
        return True

    def fitted(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a request with the length of its answer reduced to what the server accepts."""
        if (asked := limit_of(body)) is None:
            return body
        left = asked if self.answer is None else min(asked, self.answer)
        if self.whole and self.tokens is not None:
            prompt = math.ceil(estimate(body)[0] * self.scale)
            room = self.tokens - prompt - prompt // 32 - SLACK
            left = min(left, room) if room > 0 else left
        if left == asked:
            return body
        self.reduced = asked, min(left, self.reduced[1] if self.reduced else left)
        return body | {name: left for name in LENGTH if name in body}

    def exceeded(self, prompt: int, answer: int) -> bool:
        """Return whether a prompt of this length probably leaves no room for an answer."""
        return self.tokens is not None and prompt * self.scale + min(answer, GUESSED_ANSWER) > self.tokens

    def learn(self, call: Call, tokens: int) -> None:
        """Take the real number of tokens of a prompt."""
        self.scale = tokens / length_of(call)[0]


class OverBudgetError(CallError):
    """A request that was not sent, since it might exceed a limit of the budget. limit: as shown to the user."""

    def __init__(self, limit: str) -> None:
        super().__init__(f"{limit} is reached", transient=False)


class InFlight:
    """Watches the requests in flight of one session."""

    def __init__(self, server: Server, limits: Limits) -> None:
        self._server, self._limits = server, limits
        self._sent: dict[object, float] = {}  # time of each request, the oldest first
        self._long = LONG if limits.timeout > LONG else limits.timeout / 2
        self._late = self._most = 0
        self._timer: asyncio.TimerHandle | None = None

    async def over(self, request: Awaitable[Result]) -> Result:
        """Return the result of a request. Raise ServerError if the first ones of the run are all late."""
        key = object()
        self._sent[key] = asyncio.get_running_loop().time()
        self._most = max(self._most, len(self._sent))
        self._timer = self._timer or self._in(self._long)
        try:
            return await request
        except LateError:
            self._late += 1
            if self._late >= ROUNDS * self._most and not self._server.seen.answered:
                raise ServerError(
                    f"{self._server.base_url} answered none of {self._late} calls within {self._limits.timeout:g} s "
                    f"each: check that it runs and how busy it is, give it longer by {TIMEOUT}, or ask it less at a "
                    "time by --concurrency; nothing is lost, and the same command goes on"
                ) from None
            raise
        finally:
            del self._sent[key]

    def _in(self, seconds: float) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        """Report calls that wait long, and look again when the oldest of them waits twice as long."""
        waited = [asyncio.get_running_loop().time() - sent for sent in self._sent.values()]
        if waited and waited[0] >= self._long:
            log.warning(
                "%s: %s without an answer, the longest for %.0f s; each attempt ends after %g s (%s sets it)",
                self._server.base_url,
                counted(len(waited), "call"),
                waited[0],
                self._limits.timeout,
                TIMEOUT,
            )
            self._long *= 2
        self._timer = self._in(self._long - waited[0]) if waited else None


class Paid:
    """Sends requests, with retries, and no more at a time than the budget allows.

    changed: gets the number of requests without a result yet, whenever it changes, and the number of new retries.
    """

    def __init__(self, server: Server, budget: Budget, limits: Limits, changed: Callable[[int, int], None]) -> None:
        self._budget, self._pace, self._changed = budget, Pace(limits), changed
        self._waiting = InFlight(server, limits)
        self._in_flight, self._change = 0, asyncio.Condition()

    async def answer(self, body: Body, ask: Ask[Answer]) -> Sequence[Answer]:
        """Return the result of a request. Raise CallError for no result, OverBudgetError if it was not sent."""
        guess, used, sent = estimate(body), (0, 0), 0
        unread: list[tuple[int, int]] = []  # of responses that were paid for, and could not be read
        async with self._change:
            while self._in_flight >= self._budget.most_at_once or (limit := self._budget.exhausted_by(*guess)):
                if not self._in_flight:  # those in flight may take less than was reserved for them
                    self._budget.reached, _, _ = str(limit).partition(" ")
                    raise OverBudgetError(str(limit))
                await self._change.wait()
            self._in_flight += 1
            self._changed(self._in_flight, 0)

        async def attempt() -> Sequence[Answer]:
            nonlocal sent
            await self._pace.enter(sum(guess))
            sent += 1
            if sent > 1:
                self._changed(self._in_flight, 1)
            try:
                return await self._waiting.over(ask(body))
            except UnreadError as error:
                error.transient &= not unread
                unread.append(error.used if any(error.used) else (guess[0], 0))
                raise

        try:
            answer = await self._pace.retrying(attempt)
            used = tokens_of(answer, guess[0])
            self._budget.calls += 1
            return answer
        finally:
            used = sum(prompt for prompt, _ in (used, *unread)), sum(answered for _, answered in (used, *unread))
            self._budget.settle(*guess, used, sent)
            self._pace.correct(sum(guess), sum(used))
            async with self._change:
                self._in_flight -= 1
                self._changed(self._in_flight, 0)
                self._change.notify_all()


def tokens_of(replies: Sequence[Reply] | Sequence[TokenReport], prompt: int) -> tuple[int, int]:
    """Return the tokens that a request used: as reported by the server, else estimated."""
    tokens = sum(reply.prompt_tokens for reply in replies), sum(reply.completion_tokens for reply in replies)
    return tokens if any(tokens) else (prompt, sum(len(reply.text) // 4 + 1 for reply in replies))
