"""Checks before the work starts that an output file or directory can be written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lmkbc.errors import InputError
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
