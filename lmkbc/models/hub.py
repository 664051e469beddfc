"""The model hub: whether a model is to be fetched from it, told at once where that cannot be.

The hub's own library tries again and again, for each file of a model, and says so each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import httpx2

from lmkbc.errors import InputError
from lmkbc.models.packaged import generative

SOON = 3.0
"""Seconds in which the hub answers anything at all, or is taken to be out of reach."""


def local_only(name: str, *, revision: str | None = None, offline: bool = False) -> bool:
    """Return whether a model, by id or directory, is read from this machine alone.

    InputError for an id that is not in the hub's cache here, where the hub is not to be asked or cannot be reached.
    """
    if Path(name).is_dir():
        return True
    if not offline and reachable():
        return False
    if cached(name, revision):
        return True
    known = generative(name)
    hint = f"install it with {known.install!r}, or " if known else ""
    way = f", and the model hub {_endpoint()} cannot be reached; connect to a network"
    raise InputError(
        f"the model {name} cannot be loaded: it is not on this machine"
        f"{'; run once without --offline to fetch it' if offline else way}, or {hint}name a directory with --model"
    )


def cached(name: str, revision: str | None = None, files: Sequence[str] = ("config.json",)) -> Path | None:
    """Return the directory of the hub's cache on this machine that holds these files of a model; None for none."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = [try_to_load_from_cache(name, file, revision=revision) for file in files]
    except HFValidationError:  # no name that a hub would have
        return None
    return Path(str(found[0])).parent if all(isinstance(file, str) for file in found) else None


@cache
def reachable() -> bool:
    """Return whether the hub answers, whatever it says. It is asked once."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False
    try:
        httpx2.head(_endpoint(), timeout=SOON)
    except (httpx2.HTTPError, httpx2.InvalidURL):
        return False
    return True


def _endpoint() -> str:
    from huggingface_hub import constants

    return str(constants.ENDPOINT)
