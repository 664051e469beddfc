"""Cache of fitted arrays on disk, under the hash of their input. A damaged or foreign file counts as absent.

The cache only saves time. If it is not writable, the run continues without it.
"""

from __future__ import annotations

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
from lmkbc.files.checksum import sha256, signed, unsigned

Arrays = Mapping[str, npt.NDArray[np.generic]]
logger = logging.getLogger("lmkbc")


def key(*parts: Any) -> str:
    """Return the SHA-256 of values that JSON can hold."""
    return sha256(msgspec.json.encode(parts))


class ArrayStore:
    """A directory of array files. Each file begins with a SHA-256 of its name and content, so damage is found."""

    def __init__(self, directory: Path) -> None:
        self._directory, self._writable = directory, True

    def get(self, kind: str, name: str, compute: Callable[[], Arrays]) -> Arrays:
        """Return the stored arrays of this name, else compute them and store them if possible."""
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
            atomic.write_bytes(path, signed(path.name, content))
        except LmkbcError as error:
            self._writable = False
            places.warn_unwritable(self._directory, error.__cause__, "the next run computes the same again")
        return arrays


def _read(path: Path) -> Arrays | None:
    try:
        content = unsigned(path.name, path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        logger.warning("%s cannot be read (%s) and is made again", path, error.strerror or error)
        return None
    if content is None:
        logger.warning("%s is damaged and is made again", path)
        return None
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return dict(arrays)
