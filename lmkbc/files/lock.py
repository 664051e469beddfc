"""Locks for a single writer: of a command's output, before its work starts, and of entries in a cache."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import filelock

from lmkbc.errors import InputError, LmkbcError
from lmkbc.files.writable import check_directory, refusals


@contextmanager
def writing_alone(directory: Path) -> Iterator[None]:
    """Keep other commands from writing a directory until the block ends. InputError if another one writes it.

    The lock is a hidden file beside the directory, which is removed with the block. A killed process leaves the file,
    but not the lock. If the block fails, parent directories that were made for the lock are removed.
    """
    if directory.name in ("", ".."):
        raise InputError(f"'{directory}' is no name of a directory to write: name a new one")
    check_directory(directory)
    path = directory.with_name(f".{directory.name}.lock")
    made = [parent for parent in path.absolute().parents if not parent.exists()]
    with refusals(directory):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(path)
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            raise InputError(
                f"another run is writing {directory}: wait for its end, or name another directory"
            ) from None
    try:
        yield
        made.clear()
    finally:
        with suppress(OSError):  # some systems cannot remove an open file
            path.unlink()
        lock.release()
        with suppress(OSError):  # raised at the first parent that is not empty
            for parent in made:
                parent.rmdir()


@contextmanager
def in_turn(target: Path) -> Iterator[None]:
    """Let one process at a time make an entry of the user's cache; others wait. LmkbcError if it is not writable."""
    lock = filelock.FileLock(target.with_name(f".{target.name}.lock"))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        held = lock.acquire()
    except OSError as error:
        raise LmkbcError(
            f"{target.parent} cannot be written: {error.strerror or error}; free it, or name another cache with "
            "XDG_CACHE_HOME"
        ) from None
    with held:
        yield
