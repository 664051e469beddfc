"""Checks before the work starts that an output can be written, and locks for a single writer."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from lmkbc.errors import InputError, LmkbcError
from lmkbc.files.places import name_of


def check_file(path: Path | None, *inputs: Path | None) -> None:
    """Raise InputError if a file could not be written later, so that the user learns it before the work.

    inputs: files that the same command reads. The result must not replace them.
    """
    if path is None:
        return
    with refusals(path):
        if path.is_dir():
            raise InputError(f"{path} is a directory: name a file to write")
        if path.exists() and not path.is_file():
            raise InputError(f"{path} is no regular file, and a result replaces what it is named: name another file")
        check_places(path, path.absolute().parents)
    for read in filter(None, inputs):
        if same(path, read):
            raise InputError(f"{path} is what is read: name another file to write")


def check_replaced(path: Path, is_own: Callable[[Path], bool], what: str) -> None:
    """Raise InputError if a file is there that no earlier command wrote. what: what such a command writes."""
    if path.exists() and path.stat().st_size and not is_own(path):
        raise InputError(f"{path} is there already and is no {what}: name another file, or remove it")


def check_new(path: Path | None, *inputs: Path | None) -> None:
    """Raise InputError as `check_file` does, and for a file that is there, which may be the user's own."""
    check_file(path, *inputs)
    if path is not None and path.exists():
        raise InputError(f"{path} is there already, and this command replaces nothing: name a new file, or remove it")


def same(first: Path, second: Path) -> bool:
    """Return whether two paths name the same file or directory. It need not exist."""
    if first.exists() and second.exists():
        return first.samefile(second)
    return first.resolve() == second.resolve()


def check_directory(path: Path | None) -> None:
    """Raise InputError if files could not be written into a directory later."""
    if path is not None:
        with refusals(path):
            if path.exists() and not path.is_dir():
                raise InputError(f"{path} is a file: name a directory")
            check_places(path, path.absolute().parents)


def check_places(path: Path, places: Sequence[Path]) -> None:
    """Raise InputError if the first existing directory of these is not writable, or the path's name is no UTF-8."""
    if name_of(path) != path.name:
        raise InputError(f"{path} cannot be written, since its name is not UTF-8: name it otherwise")
    nearest = next(place for place in places if place.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        what = "may not be written to" if nearest.is_dir() else "is no directory"
        raise InputError(f"{path} cannot be written, since {nearest} {what}: name another place")


@contextmanager
def refusals(path: Path) -> Iterator[None]:
    """Turn the system's refusal to write a user's path into an InputError."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}; name another place") from None


@contextmanager
def writing_alone(directory: Path) -> Iterator[None]:
    """Keep other commands from writing a directory until the block ends. InputError if another one writes it.

    The lock is a hidden file beside the directory, which is removed with the block. A killed process leaves the file,
    but not the lock. If the block fails, parent directories that were made for the lock are removed.
    """
    import filelock  # here, since it loads asyncio

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
    import filelock

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
