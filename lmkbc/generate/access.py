"""Access to a server: what a recipe says of it, what the command line says before that, and what a run may spend."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lmkbc.models.answers import Store
from lmkbc.models.budget import Budget, checked_prices
from lmkbc.models.located import is_local_name
from lmkbc.models.server.address import BASE_URL, Server
from lmkbc.models.server.limits import Limits
from lmkbc.models.store_place import Database
from lmkbc.run.base import Run

if TYPE_CHECKING:
    from lmkbc.models.server.session import Session


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """What a recipe's table says of a server: see `Server`, `Limits` and `Budget`.

    key_env: the variable that holds the key for base_url, which is sent once the user has named it for that host.
    """

    model: str | None = None
    base_url: str | None = None
    key_env: str = ""
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

    def served(self, run: Run) -> str | None:
        """Return the model that the server says it serves, where any is taken; None where that is not asked."""
        wanted = (self.any_model or run.servers.any_model) and not self.is_local(run)
        return self.access(run).server.name if wanted else None

    def _is_served(self, run: Run) -> bool:
        return bool(run.servers.base_url or self.base_url or os.environ.get(BASE_URL))

    def access(self, run: Run) -> Access:
        """How this run may ask the server; what the command line gives (--model, --base-url, ...) comes first."""
        given = run.servers
        store = run.store()
        server = Server.of(
            given.base_url,
            run.model or self.model,
            revision=self.revision,
            any_model=self.any_model or given.any_model,
            offline=run.offline,
            recipe_url=self.base_url,
            key_env=self.key_env,
            shared=isinstance(store.place, Database),
        )
        limits = replace(self.limits, concurrency=given.concurrency) if given.concurrency else self.limits
        budget = Budget(given.max_cost, given.max_tokens, given.prices or self.prices, run.budgets)
        from lmkbc.models.server.served import as_served  # which loads the server's library

        server = as_served(server, limits, store, run.listings, offline=run.offline)
        return Access(server, store, limits, budget, run.offline)


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
        from lmkbc.models.server.session import Session  # which loads the server's library

        return Session(self.server, self.store, self.limits, self.budget, offline=self.offline)
