"""A session: the requests of one run to one server, each looked up in the store first and committed when answered."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lmkbc.budget import Budget
from lmkbc.generate.chat.answer import Reply
from lmkbc.generate.chat.client import CallError, ChatClient, RejectedError, Server
from lmkbc.generate.chat.limits import Limits, Throttle, estimate
from lmkbc.generate.chat.request import MOST_DRAWS, Offers, blamed, without
from lmkbc.generate.chat.retry import retrying
from lmkbc.store import Call, Store

log = logging.getLogger(__name__)


class OverBudgetError(CallError):
    """The next request might overrun a limit of the budget."""

    def __init__(self, limit: str) -> None:
        super().__init__(f"{limit} is reached", transient=False)


class Session:
    """Gets draws. stopped: why the session asks no more, None while it does; what is then missing stays missing.

    replayed: answers that came from the store. failures: reason -> queries. tokens: of all answers used, the stored
    ones included, as (prompt, answer).
    """

    def __init__(self, server: Server, store: Store, limits: Limits, budget: Budget, *, offline: bool = False) -> None:
        self.budget = budget
        self.offers = Offers()
        self.failures: Counter[str] = Counter()
        self.replayed = 0
        self.tokens = (0, 0)
        self.stopped = "offline" if offline else None
        self.client = ChatClient(server, limits)
        self._store = store
        self.limits = limits
        self._throttle = Throttle(limits)
        self._failed_in_a_row = 0
        self._alone: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def close(self) -> None:
        """Close all connections."""
        await self.client.close()

    async def draws(self, calls: Sequence[Call]) -> list[Reply | None]:
        """The answers of calls that differ only in seed and draw; None for what stays without."""
        async with self._alone[calls[0].prompt_digest]:  # subjects of one name have one prompt: it is asked once
            return await self._draws(calls)

    async def _draws(self, calls: Sequence[Call]) -> list[Reply | None]:
        stored = [self._store.get(call) for call in calls]
        kept = [None if one is None else msgspec.convert(one, Reply) for one in stored]
        replies = [one if one and self.client.server.takes(one.served) else None for one in kept]
        missing = [draw for draw, reply in enumerate(replies) if reply is None]
        self.replayed += len(calls) - len(missing)
        if missing and self.stopped is None:
            try:
                await self._ask(calls, missing, replies)
            except CallError as error:
                self._failed(error)
        for reply in filter(None, replies):
            self.tokens = self.tokens[0] + reply.prompt_tokens, self.tokens[1] + reply.completion_tokens
        return replies

    async def _ask(self, calls: Sequence[Call], missing: list[int], replies: list[Reply | None]) -> None:
        """Fill in missing replies: all unseeded draws at once where the server gives them, else one by one."""
        while missing and self.stopped is None:
            several = calls[0].seed is None and self.offers.several
            together = missing[: MOST_DRAWS if several else 1]
            found = (await self._request(calls[together[0]], len(together)))[: len(together)]
            if len(found) < len(together):
                self.offers.several = False
            answered = together[: len(found)]
            self._store.put(
                (calls[draw], msgspec.to_builtins(reply)) for draw, reply in zip(answered, found, strict=True)
            )
            for draw, reply in zip(answered, found, strict=True):
                replies[draw] = reply
            missing = missing[len(found) :]
            self._failed_in_a_row = 0

    async def _request(self, call: Call, draws: int) -> list[Reply]:
        """One request; where the server refuses it, once more without the optional fields that it may not know."""
        body = self.offers.body(call, draws)
        try:
            return await self._paid(body)
        except RejectedError as error:
            fields = blamed(body, str(error))
            if not fields:
                raise
            replies = await self._paid(without(body, fields))
            log.info("%s takes no %s (%s): asked without", call.base_url, " and ".join(fields), error)
            self.offers.refuse(fields)
            return replies

    async def _paid(self, body: Mapping[str, Any]) -> list[Reply]:
        guess = estimate(body)
        if limit := self.budget.exhausted_by(*guess):
            raise OverBudgetError(limit)
        used = (0, 0)

        async def attempt() -> list[Reply]:
            await self._throttle.enter(sum(guess))
            return await self.client.ask(body)

        try:
            replies = await retrying(attempt, self.limits, self._throttle)
            used = _tokens(replies, guess[0])
            return replies
        finally:
            self.budget.settle(*guess, used)
            self._throttle.correct(sum(guess), sum(used))

    def _failed(self, error: CallError) -> None:
        if isinstance(error, OverBudgetError):
            self.stopped = self.stopped or str(error)
            return
        self.failures[str(error)] += 1
        if isinstance(error, RejectedError):  # of this prompt alone, and at once: others may be answered
            return
        self._failed_in_a_row += 1
        if self._failed_in_a_row >= self.limits.patience:
            self.stopped = self.stopped or f"{self._failed_in_a_row} queries in a row failed"


def _tokens(replies: Sequence[Reply], prompt: int) -> tuple[int, int]:
    """Tokens that a request used, as the server tells; else as estimated."""
    told = sum(reply.prompt_tokens for reply in replies), sum(reply.completion_tokens for reply in replies)
    return told if any(told) else (prompt, sum(len(reply.text) // 4 + 1 for reply in replies))
