"""Packed files with bounds, so that a small file cannot fill the memory.

A file may unpack to `FREE` bytes, or to `RATIO` times its size if that is more. JSONL unpacks to 5 to 20 times its
size, and to 100 times with a long prompt in every row. A user with a larger ratio must unpack the file first. A file
that is read as a whole, packed or plain, has a bound of its own (see `whole` and `blocks`). A file that is read line by
line may have any size.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from lmkbc.errors import InputError
from lmkbc.files.source import opened

FREE = 64 << 20
RATIO = 200
WHOLE = 128 << 20
"""Most bytes of a file that is read as a whole."""
DOCUMENT = 8 << 20
"""Most bytes of a JSON file with one value. Lists and tables take twenty times as much memory."""
MEMBERS = 64 << 20
"""Most bytes of an archive's files together; KAMEL's have half of it."""
LONGEST_LINE = 8 << 20
"""Most bytes of a line; the longest entity of Wikidata takes half of it."""
STEP = 1 << 20
_DAMAGED = (
    *(OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile),
    *(ValueError, IndexError, OverflowError, struct.error),  # of a zip's own fields
    *(NotImplementedError, RuntimeError),  # an unknown method, encrypted
)
"""Exceptions that unpacking damaged bytes raises."""


def _only_member(source: Any) -> IO[bytes]:
    """Return the only file in a zip, as in a submission."""
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
    """The bytes of a packed stream, counted while they are read. InputError for too many bytes, or damage."""

    def __init__(self, path: Path, source: Any, size: int, *own: IO[bytes]) -> None:
        self._path, self._source, self._own = path, source, own
        self._bound, self._done = max(FREE, RATIO * size), 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Unpack into a buffer, as `io.RawIOBase` requires."""
        try:
            part = self._source.read(len(buffer))
        except _DAMAGED as error:
            raise _damaged(self._path, error) from None
        self._done += len(part)
        if self._done > self._bound:
            raise InputError(
                f"{self._path} unpacks to more than {self._bound >> 20} MiB, out of proportion to its size: if that is "
                "right, unpack it first"
            )
        buffer[: len(part)] = part
        return len(part)

    def close(self) -> None:
        """Close the packed stream too."""
        if not self.closed:
            for one in (self._source, *self._own):
                one.close()
        super().close()


def is_packed(content: bytes) -> bool:
    """Return whether bytes are a packed file, including zstandard and zlib."""
    return _opener(content) is not None or content[:4] == b"\x28\xb5\x2f\xfd" or content[:2] in _ZLIB


def stream(path: Path) -> IO[bytes]:
    """Return a file's content as a stream. A packed file is unpacked, and then the stream cannot seek."""
    file = opened(path)
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    opener = _opener(file.read(8))
    file.seek(0)
    if opener is None:
        return file
    try:
        return bounded(path, opener(file), size, file)
    except _DAMAGED as error:  # a zip without a readable directory, or with several files
        file.close()
        raise _damaged(path, error) from None


def bounded(path: Path, content: Any, size: int, *own: IO[bytes]) -> IO[bytes]:
    """Return the content of a packed file as a bounded stream. content: unpacked stream.

    own: files to close with it.
    """
    return io.BufferedReader(Unpacking(path, content, size, *own), STEP)


def whole(path: Path, most: int = WHOLE) -> bytes:
    """Return the content of a file, unpacked. InputError for more than `most` bytes."""
    content = io.BytesIO()
    with stream(path) as file:
        while part := read(path, file):
            content.write(part)
            if content.tell() > most:
                raise too_large(path, most)
    return content.getvalue()


def blocks(path: Path, file: IO[bytes], most: int | None = None) -> Iterator[bytes]:
    """Yield the content of an open file in blocks of whole lines, without the last newline of each block.

    InputError for a line longer than `LONGEST_LINE`, or for more than `most` bytes.
    """
    begun, done = bytearray(), 0
    while part := read(path, file):
        done += len(part)
        if most is not None and done > most:
            raise too_large(path, most)
        lines, newline, rest = part.rpartition(b"\n")
        if newline:
            yield bytes(begun) + lines
            begun.clear()
        begun += rest
        if len(begun) > LONGEST_LINE:
            raise InputError(f"{path}: a line has more than {LONGEST_LINE >> 20} MiB; each is one row")
    if begun:
        yield bytes(begun)


def members(path: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """Yield (name, content) of an archive's files with wanted names, in its order.

    Nothing is written to disk. InputError if they have more than `MEMBERS` bytes together.
    """
    held = 0
    with stream(path) as content, tarfile.open(fileobj=content, mode="r|") as archive:
        for member in archive:
            if member.isfile() and wanted(member.name) and (inner := archive.extractfile(member)) is not None:
                held += member.size
                if held > MEMBERS:
                    raise too_large(path, MEMBERS)
                yield member.name, inner.read()


def lines(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a stream. A line longer than `LONGEST_LINE` is yielded in parts."""
    return iter(lambda: file.readline(LONGEST_LINE), b"")


def read(path: Path, file: IO[bytes]) -> bytes:
    """Return the next bytes of an open file, none at its end. InputError if the disk fails."""
    try:
        return file.read(STEP)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}; give another file") from None


def too_large(path: Path, most: int) -> InputError:
    """Return the error for a file with more bytes than its kind may have."""
    return InputError(f"{path} holds more than {most >> 20} MiB, the most that such a file may have: give a part")


def _damaged(path: Path, error: Exception) -> InputError:
    reason = " ".join(str(error).split())[:200].rstrip(". ") or type(error).__name__
    return InputError(f"{path} cannot be read: {reason}; it is damaged: make or fetch it again")


def _opener(start: bytes) -> Callable[[Any], Any] | None:
    return next((opener for magic, opener in _OPENERS.items() if start.startswith(magic)), None)
