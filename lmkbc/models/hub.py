"""The model hub: whether a model must be downloaded, with an immediate error if that is impossible.

The hub's library would retry for each file of a model, and warn each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import httpx2

from lmkbc.errors import InputError
from lmkbc.http import by_proxy, connection
from lmkbc.models.packaged import generative

SOON = 3.0
"""Seconds after which the hub counts as unreachable."""


def local_only(name: str, *, revision: str | None = None, offline: bool = False) -> bool:
    """Return whether a model, by id or directory, is read from this machine alone.

    Raise InputError for an id outside the hub's cache if the hub must not be asked or cannot be reached.
    """
    if Path(name).is_dir():
        return True
    if not offline and reachable():
        return False
    if cached(name, revision):
        return True
    known = generative(name)
    hint = f"install it with {known.install!r}, or " if known else ""
    way = f", and the model hub {_endpoint()} cannot be reached{by_proxy(_endpoint())}; connect to a network"
    raise InputError(
        f"the model {name} cannot be loaded: it is not on this machine"
        f"{'; run once without --offline to fetch it' if offline else way}, or {hint}name a directory with --model"
    )


def cached(name: str, revision: str | None = None, files: Sequence[str] = ("config.json",)) -> Path | None:
    """Return the directory in the hub's cache that holds these files of a model; None if there is none."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = [try_to_load_from_cache(name, file, revision=revision) for file in files]
    except HFValidationError:  # not a valid id of the hub
        return None
    return Path(str(found[0])).parent if all(isinstance(file, str) for file in found) else None


@cache
def reachable() -> bool:
    """Return whether the hub gives any answer. It is asked once per process."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False
    try:
        httpx2.head(_endpoint(), timeout=SOON, **connection(_endpoint()))
    except (httpx2.HTTPError, httpx2.InvalidURL):
        return False
    return True


def _endpoint() -> str:
    from huggingface_hub import constants

    return str(constants.ENDPOINT)
