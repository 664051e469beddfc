"""Packed files, bounded: what a file unpacks to stays in proportion to its size, so that a small one fills no memory.

A file may unpack to `FREE` bytes, or to `RATIO` times its size where that is more; what is read as a whole, to `WHOLE`
bytes at most. JSONL unpacks to 5 to 20 times its size, with a long prompt in every row to 100 times. Who has more of
it unpacks the file first: a plain file may have any size.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from lmkbc.errors import InputError

FREE = 64 << 20
RATIO = 200
WHOLE = 4 << 30
LONGEST_LINE = 64 << 20
"""Bytes of a line of a stream; what is longer comes in parts, which are no lines that make sense."""
_STEP = 1 << 20


def _only_member(source: Any) -> IO[bytes]:
    """The one file that a zip holds, as a submission does."""
    archive = zipfile.ZipFile(source)
    names = archive.namelist()
    if len(names) != 1:
        raise zipfile.BadZipFile(f"it holds {len(names)} files, and is read where it holds one")
    return archive.open(names[0])


_OPENERS: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
    b"PK\x03\x04": _only_member,
}
_ZLIB = frozenset({b"\x78\x01", b"\x78\x9c", b"\x78\xda", b"\x78\x5e"})


class Unpacking(io.RawIOBase):
    """The bytes of a packed stream, counted as they come. InputError where they are too many, or damaged."""

    def __init__(self, path: Path, source: Any, size: int, most: int | None = None) -> None:
        self._path, self._source = path, source
        self._bound = max(FREE, RATIO * size) if most is None else min(max(FREE, RATIO * size), most)
        self._done = 0

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Unpack into a buffer, as `io.RawIOBase` wants it."""
        try:
            part = self._source.read(len(buffer))
        except (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile) as error:
            raise InputError(f"{self._path} cannot be read: {error}; it is damaged: make or fetch it again") from None
        self._done += len(part)
        if self._done > self._bound:
            raise InputError(
                f"{self._path} unpacks to more than {self._bound >> 20} MiB, out of proportion to its size: if that is "
                "right, unpack it first"
            )
        buffer[: len(part)] = part
        return len(part)

    def close(self) -> None:
        """Close what is unpacked, too."""
        if not self.closed:
            self._source.close()
        super().close()


def is_packed(content: bytes) -> bool:
    """Whether some bytes are a packed file, zstandard's and zlib's included."""
    return _opener(content) is not None or content[:4] == b"\x28\xb5\x2f\xfd" or content[:2] in _ZLIB


def unpack(path: Path, raw: bytes) -> bytes:
    """The content of a file that was read, unpacked if it is packed. It is measured before any of it is kept."""
    opener = _opener(raw)
    if opener is None:
        return raw
    whole = io.BytesIO()
    for keep in (False, True):
        with Unpacking(path, _opened(path, opener, io.BytesIO(raw)), len(raw), WHOLE) as unpacking:
            while part := unpacking.read(_STEP):
                if keep:
                    whole.write(part)
    return whole.getvalue()


def stream(path: Path) -> IO[bytes]:
    """A file's content as it comes, unpacked if it is packed, and then not to be sought in."""
    if not path.is_file():
        raise InputError(f"{path} does not exist: check the path")
    with path.open("rb") as file:
        opener = _opener(file.read(8))
    return bounded(path, _opened(path, opener, path)) if opener else path.open("rb")


def bounded(path: Path, source: Any) -> IO[bytes]:
    """The content of a packed file that some library unpacks, within the bound for its size."""
    return io.BufferedReader(Unpacking(path, source, path.stat().st_size), _STEP)


def lines(file: IO[bytes]) -> Iterator[bytes]:
    """The lines of a stream, none longer than `LONGEST_LINE`."""
    return iter(lambda: file.readline(LONGEST_LINE), b"")


def _opened(path: Path, opener: Callable[[Any], Any], source: Any) -> Any:
    """The content of a packed file. InputError for a zip without a readable directory, or of several files."""
    try:
        return opener(source)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:  # damaged, an unknown method, encrypted
        raise InputError(f"{path} cannot be read: {error}; make or fetch it again") from None


def _opener(start: bytes) -> Callable[[Any], Any] | None:
    return next((opener for magic, opener in _OPENERS.items() if start.startswith(magic)), None)
