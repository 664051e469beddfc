"""Limits on a run's cost and tokens, and the amounts spent, updated with each report of a server."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from lmkbc.errors import InputError

MAX_TOKENS, MAX_COST = "--max-tokens", "--max-cost"
"""Options that limit a run's spending, as the user types them."""


@dataclass(slots=True)
class Usage:
    """Counts since a model was loaded. Stored answers count as if they had been requested.

    prompt_tokens: each prompt counts once, for any number of draws or options.
    completion_tokens: decoded tokens, end tokens included.
    calls: prompts that the model read.
    from_store: answers from the store.
    saved_by_prefixes: prompt tokens that were not read again, since they are a shared prefix.
    saved_by_store: tokens of stored answers and their prompts.
    seconds: time in which the model worked.
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
    def added(self, records: dict[str, Any]) -> Iterator[None]:
        """Add the counts of the enclosed code to a step's records, even if the step fails."""
        before = replace(self)
        try:
            yield
        finally:
            for name, value in asdict(self).items():
                records[name] = round(records.get(name, 0) + value - getattr(before, name), 3)


def checked_prices(prices: Any, what: str) -> tuple[float, float]:
    """Return the checked prices of a million prompt and answer tokens.

    what: start of the InputError for wrong prices.
    """
    given = [price for price in prices if isinstance(price, int | float)] if isinstance(prices, list | tuple) else []
    if len(given) != 2 or len(prices) != 2 or not all(math.isfinite(price) and price >= 0 for price in given):
        raise InputError(f"{what}: give two numbers, finite and not negative, as in 2.50,10")
    return float(given[0]), float(given[1])


@dataclass(slots=True)
class Budget:
    """Limits of a run, and the amounts that a single client has spent. Answers from the store cost nothing any more.

    max_cost: in the currency of the prices.
    max_tokens: prompt and answer tokens together.
    prices: of a million prompt tokens and a million answer tokens.
    together: budgets of all clients of the run, this one included; the limits hold for their sum.
    reached: the option that prevented a request.
    requests: those sent, retries included. calls: those that were answered.

    A request in flight counts as its estimate times the largest excess of a report over its estimate so far. No more
    requests are in flight than `most_at_once`, so the first report controls the rest.
    """

    max_cost: float | None = None
    max_tokens: int | None = None
    prices: tuple[float, float] | None = None
    together: list[Budget] = field(default_factory=list, repr=False, compare=False)
    requests: int = 0
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reached: str = ""
    _stored: tuple[int, int] = (0, 0)
    """Prompt and answer tokens of answers from the store, for which an earlier run has paid."""
    _keys: set[int] = field(default_factory=set, repr=False, compare=False)
    """Hashes of the calls that are counted there, or were answered now."""
    _open: tuple[int, int] = (0, 0)
    """Estimated prompt and answer tokens of the requests in flight."""
    _reports: int = 0
    _excess: tuple[float, float] = (1.0, 1.0)
    """Largest ratios of reported to estimated prompt and answer tokens."""

    def __post_init__(self) -> None:
        """Add the budget to the others. Raise InputError for a cost limit without prices."""
        self.together.append(self)
        if self.max_cost is not None and self.prices is None:
            raise InputError(
                "--max-cost needs to know what tokens cost: give --prices PROMPT,ANSWER per million tokens"
            )

    @property
    def most_at_once(self) -> float:
        """Return the most requests in flight: with a limit, the number of reports so far, at least 1; else infinite."""
        is_limited = self.max_tokens is not None or self.max_cost is not None
        return max(self._reports, 1) if is_limited else math.inf

    @property
    def cost(self) -> float | None:
        """Return the cost of the run so far; None if prices are unknown."""
        return self._price(self.prompt_tokens, self.completion_tokens) if self.prices else None

    @property
    def spent(self) -> dict[str, Any]:
        """Return the requests, the calls that they answered, and the amounts spent so far, for the run's records.

        cost: of all answers that are used, whenever they were paid for.
        """
        return {
            "requests": self.requests,
            "calls": self.calls,
            "spent_prompt_tokens": self.prompt_tokens,
            "spent_completion_tokens": self.completion_tokens,
            "spent_cost": self.cost,
            "cost": None if self.cost is None else self.cost + self._price(*self._stored),
        }

    def used(self, key: str, tokens: tuple[int, int] = (0, 0)) -> None:
        """Count the answer to a call once. tokens: of one from the store; one of this run is settled."""
        if hash(key) not in self._keys:
            self._keys.add(hash(key))
            self._stored = self._stored[0] + tokens[0], self._stored[1] + tokens[1]

    def exhausted_by(self, prompt: int, completion: int) -> str | None:
        """Return the limit that a request might exceed; if it fits, reserve its tokens and return None."""
        estimated = self._reckoned(prompt, completion)
        if self.max_tokens is not None:
            tokens = sum(
                budget.prompt_tokens + budget.completion_tokens + sum(budget._reserved) for budget in self.together
            )
            if tokens + sum(estimated) > self.max_tokens:
                return f"{MAX_TOKENS} {self.max_tokens}"
        if self.max_cost is not None:
            spent = math.fsum((budget.cost or 0.0) + budget._price(*budget._reserved) for budget in self.together)
            if spent + self._price(*estimated) > self.max_cost:
                return f"{MAX_COST} {self.max_cost:g}"
        self._open = self._open[0] + prompt, self._open[1] + completion
        return None

    def settle(self, prompt: int, completion: int, used: tuple[int, int], sent: int = 1) -> None:
        """Replace a reservation by the tokens used; (0, 0) for a failed request. sent: requests, retries included."""
        self._open = self._open[0] - prompt, self._open[1] - completion
        self._reports += any(used)
        self._excess = (
            max(self._excess[0], used[0] / max(prompt, 1)),
            max(self._excess[1], used[1] / max(completion, 1)),
        )
        self.requests += sent
        self.prompt_tokens += used[0]
        self.completion_tokens += used[1]

    @property
    def _reserved(self) -> tuple[float, float]:
        return self._reckoned(*self._open)

    def _reckoned(self, prompt: int, completion: int) -> tuple[float, float]:
        """Return estimates, corrected by the reports so far."""
        return prompt * self._excess[0], completion * self._excess[1]

    def _price(self, prompt: float, completion: float) -> float:
        if self.prices is None:
            return 0.0
        return (prompt * self.prices[0] + completion * self.prices[1]) / 1e6
