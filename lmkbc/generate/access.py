"""Access to a server: what a recipe says of it, what the command line says before that, and what a run may spend."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace

from lmkbc.models.budget import Budget, checked_prices
from lmkbc.models.located import is_local_name
from lmkbc.models.server.address import BASE_URL, Server
from lmkbc.models.server.limits import Limits
from lmkbc.models.server.session import Session
from lmkbc.models.store import Store
from lmkbc.run import Run


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """What a recipe's table says of a server: see `Server`, `Limits` and `Budget`."""

    model: str | None = None
    base_url: str | None = None
    revision: str = ""
    any_model: bool = False
    limits: Limits = field(default_factory=Limits)
    prices: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        """InputError for prices that nothing can be held against."""
        if self.prices is not None:
            checked_prices(self.prices, f"prices is {list(self.prices)}")

    def is_local(self, run: Run) -> bool:
        """Whether no server is named, and the model is one of this machine: then it is asked here."""
        return not self._is_served(run) and is_local_name(run.model or self.model or "")

    def is_named(self, run: Run) -> bool:
        """Whether anybody said whom to ask: a server by its address, or a model of this machine."""
        return self._is_served(run) or self.is_local(run)

    def _is_served(self, run: Run) -> bool:
        return bool(run.servers.base_url or self.base_url or os.environ.get(BASE_URL))

    def access(self, run: Run) -> Access:
        """How this run may ask the server; what the command line gives (--model, --base-url, ...) comes first."""
        given = run.servers
        server = Server.of(
            given.base_url or self.base_url,
            run.model or self.model,
            revision=self.revision,
            any_model=self.any_model or given.any_model,
            offline=run.offline,
        )
        limits = replace(self.limits, concurrency=given.concurrency) if given.concurrency else self.limits
        budget = Budget(given.max_cost, given.max_tokens, given.prices or self.prices, run.budgets)
        return Access(server, run.store(), limits, budget, run.offline)


@dataclass(frozen=True, slots=True)
class Access:
    """A server, and how this run may ask it. The budget is the run's: what all that ask spend counts together."""

    server: Server
    store: Store
    limits: Limits
    budget: Budget
    offline: bool

    def session(self) -> Session:
        """A session of requests."""
        return Session(self.server, self.store, self.limits, self.budget, offline=self.offline)
