"""The model that answers a probe: a local one, or a server's."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lmkbc.models.answers import Store
    from lmkbc.models.base import Sampling
    from lmkbc.models.causal.decode import Decoding
    from lmkbc.probe.local import Local
    from lmkbc.probe.served import Served
    from lmkbc.run.base import Servers


def local(model: str, store: Store, how: Decoding, *, offline: bool) -> Local:
    """Load a causal model by id or directory. InputError for another kind."""
    from lmkbc.models.causal.checkpoint import identity, load
    from lmkbc.models.causal.model import CausalModel
    from lmkbc.models.files import model_name
    from lmkbc.probe.local import Local

    loaded, tokenizer = load(model, offline=offline)
    return Local(CausalModel(loaded, tokenizer), model_name(model), how, store, identity(model, loaded))


def served(model: str, store: Store, sampling: Sampling, settings: Servers, *, offline: bool) -> Served:
    """Open a server's model."""
    from lmkbc.models.budget import Budget
    from lmkbc.models.server.address import Server
    from lmkbc.models.server.language_model import ServerModel
    from lmkbc.models.server.limits import Limits
    from lmkbc.models.server.served import as_served
    from lmkbc.models.store_place import Database
    from lmkbc.probe.served import Served

    server = Server.of(
        settings.base_url,
        model,
        any_model=settings.any_model,
        offline=offline,
        shared=isinstance(store.place, Database),
    )
    limits = Limits(concurrency=settings.concurrency) if settings.concurrency else Limits()
    server = as_served(server, limits, store, {}, offline=offline)
    budget = Budget(settings.max_cost, settings.max_tokens, settings.prices)
    return Served(ServerModel(server, store, limits, budget, offline=offline), sampling)
