"""Which model a server serves, as it says itself. Where any is taken, answers are kept and recorded under that name."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping, Sequence
from dataclasses import replace

import httpx2
import msgspec
import openai

from lmkbc.errors import InputError, LmkbcError
from lmkbc.models.answers import Store
from lmkbc.models.files import same_model
from lmkbc.models.server.address import Server
from lmkbc.models.server.client import SOON, CallError, ChatClient
from lmkbc.models.server.limits import Limits, Throttle
from lmkbc.models.server.retry import retrying

Listings = MutableMapping[str, Sequence[str]]
"""Server -> the models that it says it serves."""

SHOWN = 5
"""Models that an error names."""

LONGEST = 300
"""Characters of a model's name; what is longer is none."""


class _Model(msgspec.Struct):
    id: str = ""


class _Models(msgspec.Struct):
    data: list[_Model]


def as_served(server: Server, limits: Limits, store: Store, listings: Listings, *, offline: bool) -> Server:
    """Return the server under the name of the model that it says it serves, where any model is taken.

    A server is asked once, however often this is called with the same listings. Offline, what it said last counts;
    where it never said anything, the name that was asked for stays. InputError where it serves several others.
    """
    if not server.any_model:
        return server
    note = f"models of {server.place}"
    if server.place not in listings:
        listings[server.place] = tuple(store.note(note) or ()) if offline else asyncio.run(_listed(server, limits))
        if not offline and store.note(note) != list(listings[server.place]):
            store.set_note(note, list(listings[server.place]))
    models = listings[server.place]
    if not models:
        return server
    return replace(server, model=_chosen(server, models), asked=server.model)


async def _listed(server: Server, limits: Limits) -> tuple[str, ...]:
    """Ask a server for its models. LmkbcError where it does not tell them."""
    client = ChatClient(server, limits)

    async def ask(sdk: openai.AsyncOpenAI) -> bytes:
        try:
            return (await sdk.get("/models", cast_to=httpx2.Response)).content
        except openai.NotFoundError:
            return b""

    async def attempt() -> bytes:
        return await client.through(ask, min(SOON, limits.timeout))

    try:
        raw = await retrying(attempt, limits, Throttle(limits))
        names = [model.id for model in msgspec.json.decode(raw, type=_Models).data]
    except (CallError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        reason = f" ({error})" if isinstance(error, CallError) else ""
        raise _untold(server, reason) from None
    finally:
        await client.close()
    told = tuple(dict.fromkeys(server.without_key(name) for name in names if 0 < len(name) <= LONGEST))
    if not told:
        raise _untold(server)
    return told


def _untold(server: Server, reason: str = "") -> LmkbcError:
    return LmkbcError(
        f"{server.base_url} does not tell at /models which model it serves{reason}: "
        "name the model with --model in place of --any-model"
    )


def _chosen(server: Server, models: Sequence[str]) -> str:
    """Return the model that is asked for where it is among those served, else the only one."""
    if server.model in models:
        return server.model
    alike = [model for model in models if same_model(server.model, model)] or models
    if len(alike) > 1:
        names = ", ".join(alike[:SHOWN]) + (", ..." if len(alike) > SHOWN else "")
        raise InputError(f"{server.base_url} serves {len(alike)} models ({names}): name one of them with --model")
    return alike[0]
