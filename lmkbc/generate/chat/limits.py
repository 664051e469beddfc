"""What a run may ask: how much at a time, how much a minute, how often again, and how much in all."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lmkbc.errors import InputError
from lmkbc.settings import checked

GUESSED_ANSWER = 256
"""Tokens that an answer is taken to have before it is there, where its length is not limited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one server, as a recipe's plain data. They change no answer, so they are no part of a stored key.

    concurrency: requests in flight. requests_per_minute, tokens_per_minute: as the server grants them. attempts: of one
    request, the first included; total_wait: seconds that its retries may take in all, a wait that the server asks for
    included; first_wait: seconds before the first retry, doubled before each next. timeout: seconds for one attempt.
    patience: queries in a row that may fail before a run stops asking. poll: seconds between two looks at a batch job.
    """

    concurrency: int = 8
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    attempts: int = 6
    total_wait: float = 300.0
    first_wait: float = 1.0
    timeout: float = 120.0
    patience: int = 20
    poll: float = 30.0

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Limits:
        """Limits from a recipe's table. InputError for a setting or value that makes no sense."""
        limits = checked(cls, settings, "limits")
        for name in cls.__slots__:
            if (value := getattr(limits, name)) is not None and value <= 0:
                raise InputError(f"limits: {name} is {value}: give a number above 0")
        return limits


class Throttle:
    """Spreads requests and tokens evenly over the minutes, and holds all requests back when the server asks for it."""

    def __init__(self, limits: Limits) -> None:
        self._request = 60 / limits.requests_per_minute if limits.requests_per_minute else 0.0
        self._token = 60 / limits.tokens_per_minute if limits.tokens_per_minute else 0.0
        self._next_request = self._next_token = self._held = 0.0

    async def enter(self, tokens: int) -> None:
        """Wait until a request of about so many tokens may start."""
        now = asyncio.get_running_loop().time()
        start = max(now, self._next_request, self._next_token, self._held)
        self._next_request = max(now, self._next_request, start) + self._request
        self._next_token = max(now, self._next_token, start) + tokens * self._token
        if start > now:
            await asyncio.sleep(start - now)

    def correct(self, guessed: int, used: int) -> None:
        """Account for the tokens that a request really used."""
        self._next_token += (used - guessed) * self._token

    def hold(self, seconds: float) -> None:
        """Let nothing start for so long."""
        self._held = max(self._held, asyncio.get_running_loop().time() + seconds)


@dataclass(slots=True)
class Budget:
    """What a run may spend, and what one of those that ask has spent. Answers from the store cost nothing.

    max_cost: in the currency of the prices; max_tokens: prompt and answer tokens together. prices: of a million prompt
    tokens and a million answer tokens. together: the budgets of all that ask in a run, this one included, for whose sum
    the limits hold. What is in flight counts as its estimate, so that a limit is overrun by no more than estimates are
    wrong.
    """

    max_cost: float | None = None
    max_tokens: int | None = None
    prices: tuple[float, float] | None = None
    together: list[Budget] = field(default_factory=list, repr=False, compare=False)
    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    _reserved_tokens: int = 0
    _reserved_cost: float = 0.0

    def __post_init__(self) -> None:
        """Join the others, and refuse a cost limit that nothing can be held against."""
        self.together.append(self)
        if self.max_cost is not None and self.prices is None:
            raise InputError(
                "--max-cost needs to know what tokens cost: give --prices PROMPT,ANSWER per million tokens"
            )

    @property
    def cost(self) -> float | None:
        """What the run has cost so far, None where prices are not known."""
        return self._price(self.prompt_tokens, self.completion_tokens) if self.prices else None

    @property
    def spent(self) -> dict[str, Any]:
        """What the run has asked and spent so far, for its records."""
        return {
            "requests": self.requests, "spent_prompt_tokens": self.prompt_tokens,
            "spent_completion_tokens": self.completion_tokens, "cost": self.cost,
        }  # fmt: skip

    def exhausted_by(self, prompt: int, completion: int) -> str | None:
        """Which limit a request of so many tokens might overrun, None where it fits: then its tokens are reserved."""
        tokens, cost = prompt + completion, self._price(prompt, completion)
        if self.max_tokens is not None and sum(one._tokens for one in self.together) + tokens > self.max_tokens:
            return f"--max-tokens {self.max_tokens}"
        spent = math.fsum((one.cost or 0.0) + one._reserved_cost for one in self.together)
        if self.max_cost is not None and spent + cost > self.max_cost:
            return f"--max-cost {self.max_cost:g}"
        self._reserved_tokens += tokens
        self._reserved_cost += cost
        return None

    def settle(self, prompt: int, completion: int, used: tuple[int, int]) -> None:
        """Replace a reservation by what was used, (0, 0) when the request failed."""
        self._reserved_tokens -= prompt + completion
        self._reserved_cost -= self._price(prompt, completion)
        self.requests += 1
        self.prompt_tokens += used[0]
        self.completion_tokens += used[1]

    @property
    def _tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens + self._reserved_tokens

    def _price(self, prompt: int, completion: int) -> float:
        if self.prices is None:
            return 0.0
        return (prompt * self.prices[0] + completion * self.prices[1]) / 1e6


def estimate(body: Mapping[str, Any]) -> tuple[int, int]:
    """About how many prompt and answer tokens a request will use: four characters a token, answers at their longest."""
    text = sum(len(turn["content"]) for turn in body["messages"]) if "messages" in body else len(body["prompt"])
    answer = body.get("max_tokens") or body.get("max_completion_tokens") or GUESSED_ANSWER
    return text // 4 + 1, answer * body.get("n", 1)
