"""Place of a named model: a directory, a GGUF file, the hub's cache, an installed package, or the hub."""

from __future__ import annotations

from pathlib import Path

from lmkbc.models.files import file_digest, is_path
from lmkbc.models.hub import cached
from lmkbc.models.packaged import generative

SETTINGS = ("config.json", "adapter_config.json")
"""Files of settings; every model directory holds at least one of them."""


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
