"""Limits on a run's cost and tokens, and the amounts spent, updated with each report of a server."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from lmkbc.errors import InputError

MAX_TOKENS, MAX_COST = "--max-tokens", "--max-cost"
"""Options that limit what a run spends, as they are typed."""


@dataclass(slots=True)
class Usage:
    """Counts since a model was loaded. What came from the store is in them, as if it had been asked for.

    prompt_tokens: of each prompt once, however many draws or options follow it. completion_tokens: that were decoded,
    end tokens included. calls: prompts that the model was given. from_store: answers that it did not give, since they
    were stored. saved_by_prefixes: prompt tokens that were not read, since prompts before began with them.
    saved_by_store: tokens of stored answers and their prompts. seconds: that the model worked.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0
    from_store: int = 0
    saved_by_prefixes: int = 0
    saved_by_store: int = 0
    seconds: float = 0.0

    def replayed(self, prompt_tokens: int, completion_tokens: int = 0) -> None:
        """Count a stored answer."""
        self.from_store += 1
        self.prompt_tokens += prompt_tokens
        self.completion_tokens += completion_tokens
        self.saved_by_store += prompt_tokens + completion_tokens

    @contextmanager
    def added(self, told: dict[str, Any]) -> Iterator[None]:
        """Add what is counted in the meantime to the records of a step, even of one that fails."""
        before = replace(self)
        try:
            yield
        finally:
            for name, value in asdict(self).items():
                told[name] = round(told.get(name, 0) + value - getattr(before, name), 3)


def checked_prices(prices: Any, what: str) -> tuple[float, float]:
    """Check prices of a million prompt and answer tokens. InputError, which begins with `what`, for anything else."""
    given = [price for price in prices if isinstance(price, int | float)] if isinstance(prices, list | tuple) else []
    if len(given) != 2 or len(prices) != 2 or not all(math.isfinite(price) and price >= 0 for price in given):
        raise InputError(f"{what}: give two numbers, finite and not negative, as in 2.50,10")
    return float(given[0]), float(given[1])


@dataclass(slots=True)
class Budget:
    """Limits of a run, and the amounts that a single client has spent. Answers from the store cost nothing.

    max_cost: in the currency of the prices; max_tokens: prompt and answer tokens together. prices: of a million prompt
    tokens and a million answer tokens. together: the budgets of all that ask in a run, this one included, for whose sum
    the limits hold. What is in flight counts as its estimate times the most by which a report has exceeded an estimate
    so far, and no more is in flight than `most_at_once`: the first report throttles the rest. reached: the option that
    kept a request from being sent.
    """

    max_cost: float | None = None
    max_tokens: int | None = None
    prices: tuple[float, float] | None = None
    together: list[Budget] = field(default_factory=list, repr=False, compare=False)
    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reached: str = ""
    _open: tuple[int, int] = (0, 0)
    """Estimated prompt and answer tokens of what is in flight."""
    _reports: int = 0
    _excess: tuple[float, float] = (1.0, 1.0)
    """The most by which reported prompt and answer tokens have exceeded their estimates."""

    def __post_init__(self) -> None:
        """Join the others, and refuse a cost that cannot be known."""
        self.together.append(self)
        if self.max_cost is not None and self.prices is None:
            raise InputError(
                "--max-cost needs to know what tokens cost: give --prices PROMPT,ANSWER per million tokens"
            )

    @property
    def most_at_once(self) -> float:
        """Return how many requests may be in flight: under a limit, as many as were reported, the first one alone."""
        is_limited = self.max_tokens is not None or self.max_cost is not None
        return max(self._reports, 1) if is_limited else math.inf

    @property
    def cost(self) -> float | None:
        """Return what the run has cost so far, None if prices are not known."""
        return self._price(self.prompt_tokens, self.completion_tokens) if self.prices else None

    @property
    def spent(self) -> dict[str, Any]:
        """Return what the run has asked and spent so far, for its records."""
        return {
            "requests": self.requests,
            "spent_prompt_tokens": self.prompt_tokens,
            "spent_completion_tokens": self.completion_tokens,
            "cost": self.cost,
        }

    def exhausted_by(self, prompt: int, completion: int) -> str | None:
        """Return the limit that a request might overrun; reserve its tokens and return None if it fits."""
        own = self._reckoned(prompt, completion)
        if self.max_tokens is not None:
            tokens = sum(
                budget.prompt_tokens + budget.completion_tokens + sum(budget._reserved) for budget in self.together
            )
            if tokens + sum(own) > self.max_tokens:
                self.reached = MAX_TOKENS
                return f"{MAX_TOKENS} {self.max_tokens}"
        if self.max_cost is not None:
            spent = math.fsum((budget.cost or 0.0) + budget._price(*budget._reserved) for budget in self.together)
            if spent + self._price(*own) > self.max_cost:
                self.reached = MAX_COST
                return f"{MAX_COST} {self.max_cost:g}"
        self._open = self._open[0] + prompt, self._open[1] + completion
        return None

    def settle(self, prompt: int, completion: int, used: tuple[int, int]) -> None:
        """Replace a reservation by what was used, (0, 0) when the request failed."""
        self._open = self._open[0] - prompt, self._open[1] - completion
        self._reports += any(used)
        self._excess = (
            max(self._excess[0], used[0] / max(prompt, 1)),
            max(self._excess[1], used[1] / max(completion, 1)),
        )
        self.requests += 1
        self.prompt_tokens += used[0]
        self.completion_tokens += used[1]

    @property
    def _reserved(self) -> tuple[float, float]:
        return self._reckoned(*self._open)

    def _reckoned(self, prompt: int, completion: int) -> tuple[float, float]:
        """Return estimates, corrected by what servers have reported so far."""
        return prompt * self._excess[0], completion * self._excess[1]

    def _price(self, prompt: float, completion: float) -> float:
        if self.prices is None:
            return 0.0
        return (prompt * self.prices[0] + completion * self.prices[1]) / 1e6
