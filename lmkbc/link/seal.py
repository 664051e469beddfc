"""A checksum in the header of an SQLite file that is written once, so that damage is seen before anything is read.

It stands where an application may keep a number of its own (the "user version",
https://www.sqlite.org/fileformat.html), 0 in files that were never sealed.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path

PLACE = slice(60, 64)
LARGEST_CHECKED = 1 << 30
"""Bytes that are read through when a file is opened, within a second or two; longer files are taken as they are."""


def seal(path: Path) -> None:
    """Write the checksum into the header, and all of the file to disk."""
    with path.open("r+b") as file:
        file.seek(PLACE.start)
        file.write(_checksum(path).to_bytes(4, "big"))
        file.flush()
        os.fsync(file.fileno())


def is_damaged(path: Path) -> bool:
    """Whether a sealed file is not as it was written; never so of a file without a seal, or too long to read."""
    if path.stat().st_size > LARGEST_CHECKED:
        return False
    with path.open("rb") as file:
        sealed = int.from_bytes(file.read(PLACE.stop)[PLACE], "big")
    return sealed != 0 and sealed != _checksum(path)


def _checksum(path: Path) -> int:
    """CRC-32 of the file as if it were not sealed, never 0."""
    with path.open("rb") as file:
        head = bytearray(file.read(1 << 20))
        head[PLACE] = bytes(len(head[PLACE]))
        checksum = zlib.crc32(head)
        while piece := file.read(1 << 20):
            checksum = zlib.crc32(piece, checksum)
    return checksum or 1
