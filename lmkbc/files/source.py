"""Input files, opened within bounds: a regular file, or a pipe that is written to in time.

A device is refused, since it never ends. A pipe is first read into a temporary file, so that it can be read more than
once. Its size and its silence are bounded.
"""

from __future__ import annotations

import os
import select
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Any

from lmkbc.errors import InputError, LmkbcError

SILENT = 30.0
"""Longest time in seconds for which a pipe may be silent."""
PIPED = 256 << 20
"""Most bytes of a pipe."""
_PIECE = 1 << 16
_kept: dict[tuple[int, int], Any] = {}
"""Device and inode of a pipe -> temporary file with its content, deleted when the program ends."""


def opened(path: Path) -> IO[bytes]:
    """Open a regular file, or the stored content of a pipe. InputError for anything else.

    InputError also for a pipe that is silent for `SILENT` seconds, or that has more than `PIPED` bytes.
    """
    with _named(path):
        number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        found = os.fstat(number)
        if stat.S_ISREG(found.st_mode):
            return os.fdopen(number, "rb")
        try:
            if stat.S_ISFIFO(found.st_mode):
                place, first = (found.st_dev, found.st_ino), _at_once(number)
                if first is not None or place not in _kept:
                    _kept[place] = _brought(path, number, first or b"")
                return open(_kept[place].name, "rb")
        finally:
            os.close(number)
    if stat.S_ISDIR(found.st_mode):
        raise InputError(f"{path} is a directory: give a file")
    raise InputError(f"{path} is a device, which never ends: give a file or a pipe")


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Turn errors of the system into an InputError that names the file."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{path} does not exist: check the path") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a directory: give a file") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}; give another file") from None
    except ValueError as error:  # an impossible file name
        raise InputError(f"{str(path)!r} cannot be read: {error}; check the path") from None


def _at_once(number: int) -> bytes | None:
    """Return the bytes that a pipe holds now, b"" if a writer has sent none; None if it is empty and has no writer."""
    try:
        return os.read(number, _PIECE) or None
    except BlockingIOError:
        return b""


def _brought(path: Path, number: int, first: bytes) -> Any:
    """Return a temporary file with a pipe's content, read until all writers have closed it.

    first: bytes already read.
    """
    poll = select.poll()
    poll.register(number, select.POLLIN)
    kept = NamedTemporaryFile(prefix="lmkbc-")  # noqa: SIM115 -- closed when the program ends
    try:
        part = first or _part(path, number, poll)
        while part:
            if kept.tell() + len(part) > PIPED:
                raise InputError(f"{path} is a pipe that brings more than {PIPED >> 20} MiB: write it to a file first")
            _keep(kept, part)
            part = _part(path, number, poll)
        kept.flush()
    except BaseException:
        kept.close()
        raise
    return kept


def _part(path: Path, number: int, poll: select.poll) -> bytes:
    """Return the next bytes of a pipe, none at its end. InputError if it is silent too long."""
    end = time.monotonic() + SILENT
    while (left := end - time.monotonic()) > 0:
        if poll.poll(left * 1000):
            try:
                return os.read(number, _PIECE)
            except BlockingIOError:  # another process has read the bytes
                continue
    raise InputError(f"{path} is a pipe to which nothing was written for {SILENT:g} s: write to it, or give a file")


def _keep(kept: Any, part: bytes) -> None:
    try:
        kept.write(part)
    except OSError as error:
        raise LmkbcError(
            f"what a pipe brings cannot be kept in a temporary file: {error.strerror or error}; make room, or name "
            "another place in TMPDIR"
        ) from error
