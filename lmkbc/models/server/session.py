"""A session: the requests of one run to one server, each looked up in the store first and committed when answered.

A reply without content is returned, but not committed, so that the next run repeats the request.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from msgspec import structs

from lmkbc.errors import UNDECODABLE, counted
from lmkbc.http import CallError, pooled
from lmkbc.models.answers import KeptAnswers, Store
from lmkbc.models.base import Call, Reply
from lmkbc.models.budget import Budget
from lmkbc.models.server.body import TokenReport
from lmkbc.models.server.client import CompletionClient
from lmkbc.models.server.limits import PATIENCE, Limits, OverBudgetError, Paid, Window, length_of, tokens_of
from lmkbc.models.server.offers import MOST_DRAWS, Offers, blamed, guesses, without, without_prefill
from lmkbc.models.server.refusal import RejectedError, ServerError, TooLongError
from lmkbc.notes import Notes

CHOICES = (16, 8, 4, 2)
"""Numbers of choices to ask a server for: the next one after a refusal. More than the first make no difference."""

SHARE_READ = 0.55
"""Share of a prompt's expected tokens below which the server has read only a part of it. Estimates err by less."""

LONGER = 1.2
"""Ratio of two prompts' estimated tokens from which on one is surely the longer."""

LEAST_COMPARED = 40
"""Estimated tokens of a prompt from which on the server's count is compared with the estimate."""

TURN = 5
"""Approximate number of tokens that a chat template adds to a turn."""

log = logging.getLogger(__name__)

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Session:
    """Gets draws from a server.

    stopped: why the session sends no more requests; None while it does.
    replayed: answers from the store.
    window: the server's context.
    too_long: prompts that exceed it. shortest: whether one of them does so without any examples.
    shortened: prompts that fit with fewer examples.
    failures: reason -> number of queries.
    tokens: of all answers used, stored ones included, as (prompt, answer).
    notes: get the amounts spent.
    """

    def __init__(
        self,
        open_client: Callable[[], CompletionClient],
        store: Store,
        limits: Limits,
        budget: Budget,
        notes: Notes | None = None,
        *,
        offline: bool = False,
    ) -> None:
        self.budget, self._notes, self.client = budget, notes or Notes(), open_client()
        self.offers = Offers(self.client.server.model, self.client.server.seen)
        self._finding = asyncio.Lock()
        self.failures: Counter[str] = Counter()
        self.replayed = self.too_long = self.shortened = 0
        self.shortest = False
        self.window = Window()
        self.tokens = (0, 0)
        self.stopped = (
            f"--offline sends no request, not even to {self.client.server.base_url}: leave it out" if offline else None
        )
        self._store = store
        self.limits = limits
        self._paid = Paid(self.client.server, budget, limits, self._notes.waits)
        self._failed_in_a_row = 0
        self._most_read = 0, 0
        self._alone: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @property
    def account(self) -> str:
        """Return a sentence on what the run requested, found in the store, and spent."""
        budget = self.budget
        price = "" if budget.cost is None else f", cost {budget.cost:.4f}"
        return (
            f"{counted(budget.requests, 'request')}, {counted(self.replayed, 'answer')} from the store, "
            f"{budget.prompt_tokens} prompt and {budget.completion_tokens} answer tokens{price}"
        )

    def why(self, otherwise: str = "no answer") -> str:
        """Return why answers are missing: the reason that stopped the session, else the most frequent failure."""
        return self.stopped or self.commonest or otherwise

    @property
    def commonest(self) -> str:
        """Return the most frequent failure; "" if there is none."""
        return next((reason for reason, _ in self.failures.most_common(1)), "")

    def answers(
        self,
        items: Sequence[Item],
        ask: Callable[[Item], Awaitable[Answer]],
        before: Callable[[], Coroutine[Any, Any, object]] | None = None,
    ) -> Iterator[Answer]:
        """Yield the answer to each item when it arrives, with limited concurrency; then close all connections.

        before: coroutine that runs before the first item, on the same event loop.
        """
        try:
            yield from pooled(items, ask, self.limits.concurrency, before=before, close=self.client.close)
        finally:
            self._notes.usage |= self.budget.spent

    async def draws(self, variants: Iterable[Sequence[Call]]) -> list[Reply | None]:
        """Return the answers to calls that differ only in seed and draw; None for a failed call.

        variants: the calls, and the same calls with shorter and shorter prompts. The next one is tried if the server
        has no room for the current one. It is also tried if nothing may be sent and the store has no answer to the
        current one.
        """
        refused: TooLongError | None = None
        last: Sequence[Call] = ()
        cuts = 0
        for cuts, last in enumerate(variants):
            try:
                replies = await self._draws(last)
            except TooLongError as error:
                refused = error
                continue
            if self.stopped is None or any(replies):
                self.shortened += cuts > 0
                return replies
        try:
            if refused is not None and refused.lengths is None:  # only an estimate, so the server decides
                return await self._draws(last, sure=True)
        except TooLongError as error:
            refused = error
        if refused is not None:
            self.failed(refused)
            self.shortest |= cuts > 0
        return [None] * len(last)

    async def look_ahead(self, calls: Iterable[Call]) -> tuple[int, int]:
        """Return the number of prompts that probably exceed the server's context, and of all prompts not in the store.

        Return (0, 0) if the server's context is unknown.
        """
        new: list[Call] = []
        for call in calls:
            if self.kept([call]).missing:
                if not new:
                    self.window = await self.client.describe()
                    if self.window.tokens is None:
                        return 0, 0
                new.append(call)
        if new:
            longest = max(new, key=length_of)
            turns = [] if isinstance(longest.prompt, str) else longest.prompt
            text = "\n".join(turn["content"] for turn in turns) if turns else longest.prompt
            if (tokens := await self.client.tokens(text)) is not None:
                self.window.learn(longest, len(tokens) + TURN * len(turns))
        return sum(self.window.exceeded(*length_of(call)) for call in new), len(new)

    async def token_report(self, body: Mapping[str, Any]) -> TokenReport:
        """Return the tokens of a request, which is not stored. Raise CallError if there are none."""
        (report,) = await self._paid.answer(body, self.client.token_reports)
        self._failed_in_a_row = 0
        return report

    def kept(self, calls: Sequence[Call]) -> KeptAnswers:
        """Return the answers to calls that the store has; it keeps further ones if they are this model's."""
        return KeptAnswers(self._store, calls, Reply, self.client.server.is_answer)

    async def _draws(self, calls: Sequence[Call], *, sure: bool = False) -> list[Reply | None]:
        """Return the draws of one prompt.

        Raise TooLongError if it is too long; unless `sure`, our estimate counts too.
        """
        async with self._alone[calls[0].prompt_digest]:  # subjects of one name share a prompt
            answers = self.kept(calls)
            replayed = len(calls) - len(answers.missing)
            if answers.missing and self.stopped is None:
                if not sure and self.window.exceeded(*length_of(calls[0])):
                    raise TooLongError("the prompt leaves no room for an answer")
                try:
                    await self._ask(calls, answers)
                except TooLongError as error:
                    self.window.learn_from(calls[0], error.lengths)
                    raise
                except CallError as error:
                    self.failed(error)
        self.replayed += replayed
        for place, reply in enumerate(answers.found):
            if reply is not None:
                tokens = tokens_of([reply], length_of(calls[place])[0]) if place in answers.stored else (0, 0)
                self.budget.used(calls[place].key, tokens)
        replies = [None if reply is None or reply.failed else reply for reply in answers.found]
        for reply in filter(None, replies):
            self.tokens = self.tokens[0] + reply.prompt_tokens, self.tokens[1] + reply.completion_tokens
        return [reply and without_prefill(reply, calls[0].prompt) for reply in replies]

    async def _ask(self, calls: Sequence[Call], answers: KeptAnswers) -> None:
        """Ask for missing replies: all unseeded draws at once if the server supports it, else one by one."""
        while (missing := answers.missing) and self.stopped is None:
            several = calls[0].seed is None and self.offers.several
            together = missing[: MOST_DRAWS if several else 1]
            received = (await self._request(calls[together[0]], len(together)))[: len(together)]
            if len(together) > 1:
                self._learn_several(len(received) == len(together))
            self._compare(calls[0], sum(reply.prompt_tokens for reply in received))
            self._notes.received(received)
            whole = (self._with_lost(calls[place], one) for place, one in zip(together, received, strict=False))
            kept = answers.keep(dict(zip(together, whole, strict=False))).values()
            for reply in kept:
                if reply.failed:
                    self.failures[f"the server ended an answer with {reply.finish!r}"] += 1
            self._failed_in_a_row = 0

    def _with_lost(self, call: Call, reply: Reply) -> Reply:
        """Return a reply with the tokens of earlier ones to its call that were not kept, since they were paid for."""
        note = f"lost {call.key}"
        lost: tuple[int, int] = self._store.note(note) or (0, 0)
        prompt, completion = lost[0] + reply.prompt_tokens, lost[1] + reply.completion_tokens
        if not self.client.server.is_answer(reply):
            self._store.set_note(note, (prompt, completion))
        elif any(lost):
            self._store.set_note(note, None)
        self.budget.used(call.key, lost)
        return structs.replace(reply, prompt_tokens=prompt, completion_tokens=completion)

    def _learn_several(self, several: bool) -> None:
        """Remember whether the server gives as many answers as n asks for, for this session and for later dry runs."""
        self.offers.several &= several
        if several is not self._store.note(self.client.server.of_several):
            self._store.set_note(self.client.server.of_several, several)

    async def examine(self, call: Call, most: int) -> dict[str, Any]:
        """Return what the server offers, found out by requests whose answers are not stored.

        most: number of choices to ask for at first; fewer follow a refusal.
        """
        try:
            listed = tuple(await self.client.models())
        except (ServerError, CallError, *UNDECODABLE):  # the requests show what is wrong
            listed = ()
        self.window = await self.client.describe()
        (reply, *_) = await self._request(call, 1)
        choices = 1
        for wanted in (most, *(size for size in CHOICES if size < most)):
            with suppress(RejectedError):
                answered = len(await self._answer(self.body(call, 1) | {"n": wanted}))
                choices = wanted if answered >= wanted else 1
                break
        self._learn_several(choices > 1)
        return {
            "lists": list(listed),
            "choices": choices,
            "window": self.window.tokens,
            "logprobs": reply.logprobs is not None,
            "refused": sorted(self.offers.refused),
            "streams": bool(self.offers.seen.streams),
        }

    def body(self, call: Call, draws: int) -> dict[str, Any]:
        """Return the request for some draws of a call, within what the server is known to accept."""
        return self.window.fitted(self.offers.body(call, draws))

    async def _request(self, call: Call, draws: int) -> Sequence[Reply]:
        """Send one request; if the server refuses it, send it again with a shorter answer, or without optional fields.

        One request finds out what the server refuses; other requests in flight wait for the result.
        """
        sent = body = self.body(call, draws)
        left: list[str] = []
        guess: list[str] = []
        others: Iterator[list[str]] | None = None
        try:
            return await self._answer(sent)
        except RejectedError as error:
            refused = error
        async with self._finding:
            while True:
                if self.body(call, draws) == body and not self.window.learn_limit(sent, refused):
                    if isinstance(refused, TooLongError):
                        raise refused
                    named = blamed(body, refused.said)
                    if named is not None or not self.offers.learn_stream(sent, refused):
                        if named is None:
                            others = others or guesses(sent, self.offers.accepted)
                            guess = next(others, [])
                        new = guess if named is None else [name for name in named if name not in left]
                        if not new:
                            raise refused
                        left += named or []
                    log.debug("refused (%s): asked without %s", refused, " and ".join([*left, *guess]))
                body = self.body(call, draws)
                sent = without(body, [*left, *guess])
                try:
                    replies = await self._answer(sent)
                except RejectedError as error:
                    refused = error
                    continue
                self.offers.refuse([*left, *guess])
                return replies

    async def _answer(self, body: Mapping[str, Any]) -> Sequence[Reply]:
        """Return the draws of a request, and remember that the server accepts its fields."""
        replies = await self._paid.answer(body, self.client.ask)
        self.offers.accepted.update(body)
        return replies

    def _compare(self, call: Call, read: int) -> None:
        """Warn once if the server read far fewer tokens than a prompt has, or no more than of a shorter prompt."""
        expected, seen = length_of(call)[0], self.client.server.seen
        if read <= 0 or expected < LEAST_COMPARED or seen.cuts:
            return
        longest, most = self._most_read
        if read > most:
            self._most_read = expected, read
        if read < SHARE_READ * expected or (expected > LONGER * longest + LEAST_COMPARED and read <= most):
            seen.cuts = True
            self._notes.remark(
                f"{self.client.server.name}: the server read only {read} tokens of a prompt of about {expected}: it "
                "cuts long prompts without an error: have it read more (num_ctx in Ollama), or show fewer examples"
            )

    def failed(self, error: CallError) -> None:
        """Count a query that stays without an answer, and stop the session if others would fail too."""
        self.too_long += isinstance(error, TooLongError)
        if isinstance(error, OverBudgetError):
            self.stopped = self.stopped or str(error)
            return
        self.failures[str(error)] += 1
        if isinstance(error, RejectedError):  # a refusal of this prompt alone; others may succeed
            return
        self._failed_in_a_row += 1
        if self._failed_in_a_row >= PATIENCE:
            self.stopped = self.stopped or f"{self._failed_in_a_row} queries in a row failed"
