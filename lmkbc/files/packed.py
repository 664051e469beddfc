"""Packed files with bounds, so that a small file cannot fill the memory.

A file may unpack to `FREE` bytes, or to `RATIO` times its size if that is more. JSONL unpacks to 5 to 20 times its
size, and to 100 times with a long prompt in every row. A user with a larger ratio must unpack the file first. A file
that is read as a whole, packed or plain, has a bound of its own (see `whole` and `blocks`). A file that is read line by
line may have any size.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any

from lmkbc.errors import InputError, counted
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
_NO_ROWS = (".md", ".zip", ".pdf", ".docx", ".html", ".png", ".toml", ".yml", ".yaml")
"""Endings of files that are never rows, also as the only one in a zip."""
TABLES = (".jsonl", ".csv", ".tsv", ".json")
"""Suffixes of the files that are sought in a zip, in this order."""
_HIDDEN = (".", "__MACOSX")
SOME = 5
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
_ZLIB = frozenset({b"\x78\x01", b"\x78\x9c", b"\x78\xda", b"\x78\x5e"})


class Pieces(io.RawIOBase):
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


def is_packed(content: bytes) -> bool:
    """Return whether bytes are a packed file, including zstandard and zlib."""
    return _opener(content) is not None or content[:4] == b"\x28\xb5\x2f\xfd" or content[:2] in _ZLIB


def stream(path: Path) -> IO[bytes]:
    """Return a file's content as a stream: unpacked, without a byte-order mark, and UTF-16 as UTF-8.

    Of a zip, the one file with rows is read. A stream of a packed or UTF-16 file cannot seek.
    """
    file: Any = opened(path)
    try:
        if (opener := _opener(file.peek(8)[:8])) is not None:
            size = file.seek(0, io.SEEK_END)
            file.seek(0)
            source = opener(file)
            content = _member(path, source) if isinstance(source, zipfile.ZipFile) else source
            file = bounded(path, content, size, file)
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
    return io.BufferedReader(Pieces(pieces, *own), STEP)


def bounded(path: Path, content: Any, size: int, *own: IO[bytes]) -> IO[bytes]:
    """Return the content of a packed file as a bounded stream. content: unpacked stream.

    own: files to close with it.
    """
    return joined(_unpacked(path, content, size), content, *own)


def _unpacked(path: Path, content: Any, size: int) -> Iterator[bytes]:
    """Yield the bytes of an unpacked stream. InputError for too many bytes, or damage. size: of the packed file."""
    bound, done = max(FREE, RATIO * size), 0
    while True:
        try:
            part = content.read(STEP)
        except _DAMAGED as error:
            raise _damaged(path, error) from None
        if not part:
            return
        done += len(part)
        if done > bound:
            raise InputError(
                f"{path} unpacks to more than {bound >> 20} MiB, out of proportion to its size: if that is right, "
                "unpack it first"
            )
        yield part


def _member(path: Path, archive: zipfile.ZipFile) -> IO[bytes]:
    """Return the file with rows in a zip: the only one, the only table, or the predictions of a run.

    Folders do not count, nor what a desktop hides (`__MACOSX/`, `.DS_Store`).
    """
    names = {name: PurePosixPath(name.replace("\\", "/")) for name in archive.namelist() if name[-1:] not in "/\\"}
    shown = [name for name, place in names.items() if not any(part.startswith(_HIDDEN) for part in place.parts)]
    kinds = [[name for name in shown if name.lower().endswith(suffix)] for suffix in TABLES]
    if "xl/workbook.xml" in names:
        raise InputError(f"{path} is an Excel workbook: save its sheet as CSV (UTF-8), and give that file")
    alone = len(shown) == 1 and names[shown[0]].suffix.lower() not in _NO_ROWS
    found = shown if alone else next(filter(None, kinds), [])
    if len(found) > 1:
        found = [name for name in found if names[name].name == "predictions.jsonl"]
    if len(found) != 1:
        listed = ", ".join(shown[:SOME]) + ", ..." * (len(shown) > SOME)
        holds = f"holds {counted(len(shown), 'file')} ({listed})" if shown else "holds no file"
        raise InputError(f"{path} {holds}: give a zip with one file of rows, or unpack it and give that file")
    return archive.open(found[0])


def _recoded(path: Path, file: IO[bytes]) -> Iterator[bytes]:
    """Yield UTF-16 text as UTF-8; without a mark at its start, it is little-endian. InputError for other bytes."""
    decoder = codecs.getincrementaldecoder("utf-16" if file.peek(2)[:1] in b"\xff\xfe" else "utf-16-le")()  # type: ignore[attr-defined]
    try:
        while part := read(path, file):
            yield decoder.decode(part).encode()
        decoder.decode(b"", final=True)
    except UnicodeError:
        raise InputError(f"{path} begins as UTF-16 text and does not go on so: save the file as UTF-8") from None


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
    if isinstance(error, RuntimeError):  # encrypted, or packed by an unknown method
        return InputError(f"{path} cannot be unpacked here ({reason}): unpack it first, and give what it holds")
    return InputError(f"{path} cannot be read: {reason}; it is damaged: make or fetch it again")


def _opener(start: bytes) -> Callable[[Any], Any] | None:
    return next((opener for magic, opener in _OPENERS.items() if start.startswith(magic)), None)
