"""Requests that are paid for: sent within the budget of a run and at the pace of its server, and settled afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from lmkbc.models.base import Reply
from lmkbc.models.budget import Budget
from lmkbc.models.server.client import CallError
from lmkbc.models.server.limits import Limits, Throttle, estimate
from lmkbc.models.server.retry import retrying

Answer = TypeVar("Answer")
Body = Mapping[str, Any]
Ask = Callable[[Body], Awaitable[Answer]]
Tokens = Callable[[Answer, int], tuple[int, int]]
"""From an answer, and our guess of its prompt's tokens, to the prompt and answer tokens that it took."""


class OverBudgetError(CallError):
    """The next request might overrun a limit of the budget."""

    def __init__(self, limit: str) -> None:
        super().__init__(f"{limit} is reached", transient=False)


class Paid:
    """Sends requests, each again where that may help, and no more at a time than the budget allows."""

    def __init__(self, budget: Budget, limits: Limits) -> None:
        self._budget, self._limits, self._throttle = budget, limits, Throttle(limits)
        self._in_flight, self._change = 0, asyncio.Condition()

    async def answer(self, body: Body, ask: Ask[Answer], tokens: Tokens[Answer]) -> Answer:
        """Return what a request brings. CallError where it brings nothing, OverBudgetError where it is not sent."""
        async with self._change:
            await self._change.wait_for(lambda: self._in_flight < self._budget.most_at_once)
            self._in_flight += 1
        try:
            return await self._sent(body, ask, tokens)
        finally:
            async with self._change:
                self._in_flight -= 1
                self._change.notify_all()

    async def _sent(self, body: Body, ask: Ask[Answer], tokens: Tokens[Answer]) -> Answer:
        guess = estimate(body)
        if limit := self._budget.exhausted_by(*guess):
            raise OverBudgetError(limit)
        used = (0, 0)

        async def attempt() -> Answer:
            await self._throttle.enter(sum(guess))
            return await ask(body)

        try:
            answer = await retrying(attempt, self._limits, self._throttle)
            used = tokens(answer, guess[0])
            return answer
        finally:
            self._budget.settle(*guess, used)
            self._throttle.correct(sum(guess), sum(used))


def tokens_of(replies: Sequence[Reply], prompt: int) -> tuple[int, int]:
    """Return the tokens that a request used, as the server tells; else as estimated."""
    tokens = sum(reply.prompt_tokens for reply in replies), sum(reply.completion_tokens for reply in replies)
    return tokens if any(tokens) else (prompt, sum(len(reply.text) // 4 + 1 for reply in replies))
