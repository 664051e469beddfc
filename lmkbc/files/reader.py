"""Input files as streams: plain or packed, a pipe, UTF-16 too. Nothing but the caller decides how much is in memory."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import re
import shutil
import stat
import struct
import tarfile
import tomllib
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import NamedTemporaryFile
from typing import IO, Any

from lmkbc.errors import InputError, counted

STEP = 1 << 20
LONGEST, LARGEST = 1 << 28, 1 << 29
"""Longest line in bytes of a packed file, and largest content of one that is read whole."""
_NO_ROWS = (".md", ".zip", ".pdf", ".docx", ".html", ".png", ".toml", ".yml", ".yaml")
"""Endings of files that are never rows, also as the only one in a zip."""
_TABLES = (".jsonl", ".csv", ".tsv", ".json")
"""Suffixes of the files that are sought in a zip, in this order."""
_HIDDEN = (".", "__MACOSX")
_LISTED = 5
"""Most names of a zip's files in a message."""
_DAMAGED = (
    *(OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile),
    *(ValueError, IndexError, OverflowError, struct.error),  # of a zip's own fields
    *(NotImplementedError, RuntimeError),  # an unknown method, encrypted
)
"""Exceptions that unpacking damaged bytes raises."""
_OPENERS: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
    b"PK\x03\x04": zipfile.ZipFile,
    b"PK\x05\x06": zipfile.ZipFile,
}
_piped: dict[tuple[Path, int, int], Any] = {}
"""Path, device and inode of a pipe, since a later one may get the same inode -> temporary file with its content."""


def opened(path: Path) -> IO[bytes]:
    """Open a file. A pipe is first copied to a temporary file, so that it can be read more than once.

    InputError for a directory, a device and a file that cannot be read.
    """
    with _named(path):
        found = path.stat()
        if stat.S_ISREG(found.st_mode):
            return path.open("rb")
        if not stat.S_ISFIFO(found.st_mode):
            inside = sorted(one.name for one in path.iterdir())[:_LISTED] if path.is_dir() else ()
            which = f" of it ({', '.join(inside)})" if inside else " or a pipe"
            raise InputError(f"{path} is {'a directory' if path.is_dir() else 'a device'}: give a file{which}")
        place = path, found.st_dev, found.st_ino
        if place not in _piped:
            kept = NamedTemporaryFile(prefix="lmkbc-")  # noqa: SIM115 -- closed when the program ends
            with path.open("rb") as pipe:
                shutil.copyfileobj(pipe, kept)
            kept.flush()
            _piped[place] = kept
        return open(_piped[place].name, "rb")


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Turn errors of the system into an InputError that names the file."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{path} does not exist: check the path") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}; give another file") from None
    except ValueError as error:  # an impossible file name
        raise InputError(f"{str(path)!r} cannot be read: {error}; check the path") from None


class _Pieces(io.RawIOBase):
    """A stream of the bytes that an iterator yields piece by piece. own: files to close with it."""

    def __init__(self, pieces: Iterator[bytes], *own: Any) -> None:
        self._pieces, self._own, self._rest = pieces, own, memoryview(b"")

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Copy the next bytes into a buffer, as `io.RawIOBase` requires."""
        while not self._rest and (piece := next(self._pieces, None)) is not None:
            self._rest = memoryview(piece)
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size

    def close(self) -> None:
        """Close the files too."""
        if not self.closed:
            for one in self._own:
                one.close()
        super().close()


def stream(path: Path) -> IO[bytes]:
    """Return a file's content as a stream: unpacked, without a byte-order mark, and UTF-16 as UTF-8.

    Of a zip, the one file with rows is read. A stream of a packed or UTF-16 file cannot seek.
    """
    file: Any = opened(path)
    try:
        start = file.peek(8)
        if opener := next((opener for magic, opener in _OPENERS.items() if start.startswith(magic)), None):
            source = opener(file)
            content = _member(path, source) if isinstance(source, zipfile.ZipFile) else source
            file = unpacked(path, content, file)
        start = file.peek(3)[:3]
        if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or start[1:2] == b"\0" < start[:1]:
            return joined(_recoded(path, file), file)
        file.read(len(codecs.BOM_UTF8) if start == codecs.BOM_UTF8 else 0)
    except _DAMAGED as error:  # a zip without a readable directory, for example
        file.close()
        raise _damaged(path, error) from None
    except BaseException:
        file.close()
        raise
    return file  # type: ignore[no-any-return]


def joined(pieces: Iterator[bytes], *own: Any) -> IO[bytes]:
    """Return the bytes of an iterator as a buffered stream. own: files to close with it."""
    return io.BufferedReader(_Pieces(pieces, *own), STEP)


def unpacked(path: Path, content: Any, *own: IO[bytes]) -> IO[bytes]:
    """Return the content of a packed file, an unpacked stream, so that damage is an InputError.

    own: files to close with it.
    """
    return joined(_chunks(path, content), content, *own)


def _chunks(path: Path, content: Any) -> Iterator[bytes]:
    line = 0
    try:
        for piece in iter(lambda: content.read(STEP), b""):
            line = len(piece) - piece.rfind(b"\n") - 1 + (line if b"\n" not in piece else 0)
            if line > LONGEST:
                raise InputError(f"{path} unpacks to a line of more than {LONGEST >> 20} MiB: look at it")
            yield piece
    except _DAMAGED as error:
        raise _damaged(path, error) from None


def _member(path: Path, archive: zipfile.ZipFile) -> IO[bytes]:
    """Return the file with rows in a zip: the only one, the only table, or the predictions of a run.

    Folders do not count, nor what a desktop hides (`__MACOSX/`, `.DS_Store`).
    """
    names = {name: PurePosixPath(name.replace("\\", "/")) for name in archive.namelist() if name[-1:] not in "/\\"}
    shown = [name for name, place in names.items() if not any(part.startswith(_HIDDEN) for part in place.parts)]
    kinds = [[name for name in shown if name.lower().endswith(suffix)] for suffix in _TABLES]
    if "xl/workbook.xml" in names:
        raise InputError(f"{path} is an Excel workbook: save its sheet as CSV (UTF-8), and give that file")
    alone = len(shown) == 1 and names[shown[0]].suffix.lower() not in _NO_ROWS
    found = shown if alone else next(filter(None, kinds), [])
    if len(found) > 1:
        found = [name for name in found if names[name].name == "predictions.jsonl"]
    if len(found) != 1:
        listed = ", ".join(shown[:_LISTED]) + ", ..." * (len(shown) > _LISTED)
        holds = f"holds {counted(len(shown), 'file')} ({listed})" if shown else "holds no file"
        raise InputError(f"{path} {holds}: give a zip with one file of rows, or unpack it and give that file")
    return archive.open(found[0])


def _recoded(path: Path, file: IO[bytes]) -> Iterator[bytes]:
    """Yield UTF-16 text as UTF-8; without a mark at its start, it is little-endian. InputError for other bytes."""
    decoder = codecs.getincrementaldecoder("utf-16" if file.peek(2)[:1] in b"\xff\xfe" else "utf-16-le")()  # type: ignore[attr-defined]
    try:
        while part := file.read(STEP):
            yield decoder.decode(part).encode()
        decoder.decode(b"", final=True)
    except UnicodeError:
        raise InputError(f"{path} begins as UTF-16 text and does not go on so: save the file as UTF-8") from None


def whole(path: Path) -> bytes:
    """Return the content of a file: unpacked, without a byte-order mark, and UTF-16 as UTF-8.

    InputError for a packed file of more than `LARGEST` bytes.
    """
    with stream(path) as file:
        content = file.read(max(LARGEST, path.stat().st_size))
        if file.read(1):
            raise InputError(f"{path} unpacks to more than {LARGEST >> 20} MiB: give one object a line, or unpack it")
    return content


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file of settings. InputError names the place of an error."""
    try:
        return tomllib.loads(whole(path).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not valid TOML: {error}") from None


def blocks(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the content of an open file in blocks of whole lines, without the last newline of each block."""
    begun = bytearray()
    while part := file.read(STEP):
        lines, newline, rest = part.rpartition(b"\n")
        if newline:
            yield bytes(begun) + lines
            begun.clear()
        begun += rest
    if begun:
        yield bytes(begun)


def tree(path: Path, pattern: re.Pattern[str], whose: str) -> Iterator[tuple[re.Match[str], bytes]]:
    """Yield (match, content) of the JSON files in a directory, or in an archive, in whose path a pattern is found.

    whose: whose archive it is, for messages. Nothing is written to disk.
    """
    if path.is_dir():
        for file in sorted(path.rglob("*.json*")):
            if match := pattern.search(file.as_posix()):
                yield match, whole(file)
        return
    try:
        with stream(path) as content, tarfile.open(fileobj=content, mode="r|") as archive:
            for member in archive:
                match = pattern.search(member.name)
                if match and member.isfile() and (inner := archive.extractfile(member)) is not None:
                    yield match, inner.read()
    except (OSError, EOFError, tarfile.TarError) as error:
        raise InputError(
            f"{path} cannot be read as {whose} archive ({error}): give the archive as published, or its tree"
        ) from None


def _damaged(path: Path, error: Exception) -> InputError:
    reason = " ".join(str(error).split())[:200].rstrip(". ") or type(error).__name__
    if isinstance(error, RuntimeError):  # encrypted, or packed by an unknown method
        return InputError(f"{path} cannot be unpacked here ({reason}): unpack it first, and give what it holds")
    return InputError(f"{path} cannot be read: {reason}; it is damaged: make or fetch it again")
