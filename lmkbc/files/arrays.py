"""Fitted arrays on disk, by the hash of what they were fitted on. A damaged file, or another's, counts as absent.

They save time and nothing else: where they cannot be kept, the run goes on without them.
"""

from __future__ import annotations

import hashlib
import io
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from lmkbc.errors import LmkbcError
from lmkbc.files import atomic, places

Arrays = Mapping[str, npt.NDArray[np.generic]]
DIGEST = 32
logger = logging.getLogger("lmkbc")


def key(*parts: Any) -> str:
    """SHA-256 over anything that JSON can hold."""
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


class Store:
    """A directory of array files. Each begins with the SHA-256 of its name and rest, so that no damage goes unseen."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._writable = True

    def get(self, kind: str, name: str, compute: Callable[[], Arrays]) -> Arrays:
        """Return the stored arrays of this name, else the computed ones, which are then stored if they can be."""
        path = self._directory / f"{kind}-{name}.npz"
        if (stored := _read(path)) is not None:
            return stored
        arrays = compute()
        if not self._writable:
            return arrays
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        content = buffer.getvalue()
        try:
            atomic.write_bytes(path, _digest(path, content) + content)
        except LmkbcError as error:
            self._writable = False
            places.warn_unwritable(self._directory, error.__cause__, "the next run computes the same again")
        return arrays


class Unwritten(Store):
    """The same, where nothing is stored that was not there before."""

    def get(self, kind: str, name: str, compute: Callable[[], Arrays]) -> Arrays:
        """The stored arrays of this name, else the computed ones."""
        stored = _read(self._directory / f"{kind}-{name}.npz")
        return compute() if stored is None else stored


def _digest(path: Path, content: bytes) -> bytes:
    return hashlib.sha256(path.name.encode() + content).digest()


def _read(path: Path) -> Arrays | None:
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        logger.warning("%s cannot be read (%s) and is made again", path, error.strerror or error)
        return None
    if _digest(path, content[DIGEST:]) != content[:DIGEST]:
        logger.warning("%s is damaged and is made again", path)
        return None
    with np.load(io.BytesIO(content[DIGEST:]), allow_pickle=False) as arrays:
        return dict(arrays)
