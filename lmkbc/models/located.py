"""Place of a named model: a directory, a GGUF file, the hub's cache, an installed package, or the hub.

The hub's library would retry for each file of a model, and warn each time; here an unreachable hub is an error at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import httpx2

from lmkbc.errors import InputError
from lmkbc.http import by_proxy, connection
from lmkbc.models.identity import file_digest, is_path
from lmkbc.models.packaged import generative

SETTINGS = ("config.json", "adapter_config.json")
"""Files of settings; every model directory holds at least one of them."""
SOON = 3.0
"""Seconds after which the hub counts as unreachable."""


def gguf_file(name: str, revision: str | None = None) -> Path | None:
    """Return the GGUF file of a name: the named file, or a package's file for a model that is not in the hub's cache.

    Return None for any other name. Raise LmkbcError if the package's file is not the known one.
    """
    path = Path(name)
    if path.is_dir():
        return None
    if path.suffix.casefold() == ".gguf" or path.is_file():
        return path
    known = generative(name)
    return None if known is None or revision or cached(known.hub) else known.found()


def located(name: str, revision: str | None = None) -> str:
    """Return the name by which transformers loads the model: a directory, or an id of the hub.

    A GGUF file is converted to a directory. Raise InputError for a GGUF file that cannot be read.
    """
    if (path := gguf_file(name, revision)) is not None:
        from lmkbc.models.gguf.convert import unpacked

        return str(unpacked(path))
    known = None if Path(name).is_dir() else generative(name)
    return known.hub if known else name


def is_local_name(name: str) -> bool:
    """Return whether a name means a local model, not a server's: a GGUF file, a directory, or a package's model.

    A missing file or directory, or a model whose package is not installed, counts too, since OpenAI has no such names.
    """
    if Path(name).suffix.casefold() == ".gguf" or is_path(name):
        return True
    here = any((Path(name) / settings).is_file() for settings in SETTINGS) or generative(name) is not None
    return here or ("/" in name and cached(name) is not None)


def is_available(name: str) -> bool:
    """Return whether a model can be loaded without the hub: from a directory, a file, the hub's cache, or a package."""
    if Path(name).exists():
        return True
    known = generative(name)
    return cached(known.hub if known else name) is not None or (known is not None and known.found() is not None)


def gguf_digest(name: str) -> str:
    """Return the SHA-256 of the GGUF file of a name; "" if it has none."""
    path = gguf_file(name)
    return "" if path is None else file_digest(str(path))


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
