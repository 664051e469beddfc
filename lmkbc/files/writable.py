"""Checks, before the work is done, that a file or directory can be written where a person named it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lmkbc.errors import InputError


def check_file(path: Path | None, *inputs: Path | None) -> None:
    """Raise InputError if a file could not be written later, so that a person reads it before the work is done.

    inputs: what the same command reads, which its result must not replace.
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


def same(first: Path, second: Path) -> bool:
    """Return whether two paths name one file or directory, there or not yet there."""
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
    """Raise InputError if the nearest of these directories that exists cannot be written to."""
    nearest = next(place for place in places if place.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        what = "may not be written to" if nearest.is_dir() else "is no directory"
        raise InputError(f"{path} cannot be written, since {nearest} {what}: name another place")


@contextmanager
def refusals(path: Path) -> Iterator[None]:
    """Turn what the system refuses of a path that a person gave into an InputError."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}; name another place") from None
