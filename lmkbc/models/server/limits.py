"""How a server may be asked: how much at a time, how much a minute, and how often again."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

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

    def __post_init__(self) -> None:
        """ValueError for a value that makes no sense."""
        for limit in fields(self):
            if (value := getattr(self, limit.name)) is not None and not 0 < value < math.inf:
                raise ValueError(f"{limit.name} is {value}: give a finite number above 0")


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


def estimate(body: Mapping[str, Any]) -> tuple[int, int]:
    """About how many prompt and answer tokens a request will use: four characters a token, answers at their longest.

    A prompt in tokens has as many as it has.
    """
    prompt = body.get("prompt", "")
    text = sum(len(turn["content"]) for turn in body["messages"]) if "messages" in body else len(prompt)
    answer = body.get("max_tokens") or body.get("max_completion_tokens") or GUESSED_ANSWER
    return (text // 4 + 1 if isinstance(prompt, str) else text), answer * body.get("n", 1)
