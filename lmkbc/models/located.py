"""Place of a named model: a directory, a GGUF file, the hub's cache, an installed package, or the hub."""

from __future__ import annotations

from pathlib import Path

from lmkbc.models.files import file_digest, is_path
from lmkbc.models.hub import cached
from lmkbc.models.packaged import generative

SETTINGS = ("config.json", "adapter_config.json")
"""Files of settings; every directory of a model holds at least one of them."""


def gguf_file(name: str, revision: str | None = None) -> Path | None:
    """Return the GGUF file that a name leads to: the one named, or a package's for a model that the hub's cache lacks.

    None for any other name. LmkbcError where the package's file is not the one known.
    """
    path = Path(name)
    if path.is_dir():
        return None
    if path.suffix.casefold() == ".gguf" or path.is_file():
        return path
    known = generative(name)
    return None if known is None or revision or cached(known.hub) else known.found()


def located(name: str, revision: str | None = None) -> str:
    """Return what transformers load the model by: a directory, which a GGUF file is unpacked to, or an id of the hub.

    InputError for a GGUF file that cannot be read.
    """
    if (path := gguf_file(name, revision)) is not None:
        from lmkbc.models.gguf.convert import unpacked

        return str(unpacked(path))
    known = None if Path(name).is_dir() else generative(name)
    return known.hub if known else name


def is_local_name(name: str) -> bool:
    """Return whether a name means a model of this machine, not of a server: a GGUF file, a directory, or a package's.

    A GGUF file that is not there, or a model whose package is not, counts too: no server is meant by such a name.
    """
    path = Path(name)
    if path.suffix.casefold() == ".gguf" or (is_path(name) and path.exists()):
        return True
    return any((path / settings).is_file() for settings in SETTINGS) or generative(name) is not None


def is_available(name: str) -> bool:
    """Return whether a model can be loaded without any hub: a directory, a file, the hub's cache, or a package."""
    if Path(name).exists():
        return True
    known = generative(name)
    return cached(known.hub if known else name) is not None or (known is not None and known.found() is not None)


def gguf_digest(name: str) -> str:
    """Return the SHA-256 of the GGUF file that a name leads to; "" where it leads to none."""
    path = gguf_file(name)
    return "" if path is None else file_digest(str(path))
