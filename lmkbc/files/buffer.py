"""Bytes that are written in pieces and hashed: in memory if they are few, else in an unnamed file."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from tempfile import SpooledTemporaryFile

from lmkbc.errors import LmkbcError

IN_MEMORY = 16 << 20
PIECE = 1 << 20


class Buffer:
    """A temporary file, deleted when it is closed. packed: whether to gzip its content, without a time stamp.

    LmkbcError if the disk is full.
    """

    def __init__(self, *, packed: bool = False) -> None:
        self._file = SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 -- closed with the buffer
        self._digest, self._ended = hashlib.sha256(), False
        self._packer = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS) if packed else None
        self.pieces = 0

    def write(self, piece: bytes) -> None:
        """Add a piece."""
        self.pieces += 1
        self._put(self._packer.compress(piece) if self._packer else piece)

    @property
    def sha256(self) -> str:
        """Return the hex digest of the whole. Nothing may be written afterwards."""
        self._end()
        return self._digest.hexdigest()

    def chunks(self) -> Iterator[bytes]:
        """Yield the whole from its beginning. Nothing may be written afterwards."""
        self._end()
        self._file.seek(0)
        yield from iter(lambda: self._file.read(PIECE), b"")

    def close(self) -> None:
        """Delete the content."""
        self._file.close()

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            if self._packer:
                self._put(self._packer.flush())

    def _put(self, content: bytes) -> None:
        self._digest.update(content)
        try:
            self._file.write(content)
        except OSError as error:
            raise LmkbcError(
                f"what is to be written cannot be kept in a temporary file: {error.strerror or error}; nothing was "
                "changed; make room, or name another place in TMPDIR"
            ) from error


Content = bytes | Buffer
"""Content of a file to write."""


def pieces(content: Content) -> Iterator[bytes]:
    """Yield the bytes of a content in pieces."""
    return content.chunks() if isinstance(content, Buffer) else iter((content,))


def digest(content: Content) -> str:
    """Return the hex SHA-256 of a content."""
    return content.sha256 if isinstance(content, Buffer) else hashlib.sha256(content).hexdigest()
