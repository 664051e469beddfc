"""Files that survive: written to a temporary name beside the target, flushed to disk, then renamed.

A kill leaves the old file or the new one. A run is a directory: it is built beside the old one and swapped in with two
renames; a kill between them leaves the old run under a hidden name, which the next write or read restores.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from lmkbc.errors import InputError, LmkbcError


@contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise LmkbcError(f"{path} cannot be written: {reason}; what was there before is untouched") from error


def _write_flushed(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def write_bytes(path: Path, content: bytes) -> None:
    """Replace one file. LmkbcError when the disk refuses, with nothing half-written."""
    with _disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(handle)
        try:
            _write_flushed(Path(name), content)
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def check_file(path: Path | None) -> None:
    """InputError where a file could not be written later, so that a person hears of it before the work is done."""
    if path is not None:
        if path.is_dir():
            raise InputError(f"{path} is a directory: name a file to write")
        _check_parents(path)


def check_directory(path: Path | None) -> None:
    """InputError where a directory could not be written later."""
    if path is not None:
        if path.exists() and not path.is_dir():
            raise InputError(f"{path} is a file: name a directory")
        _check_parents(path)


def _check_parents(path: Path) -> None:
    nearest = next(parent for parent in path.absolute().parents if parent.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        what = "may not be written to" if nearest.is_dir() else "is no directory"
        raise InputError(f"{path} cannot be written, since {nearest} {what}: name another place")


def _previous(directory: Path) -> Path:
    return directory.with_name(f".{directory.name}.previous")


def restore(directory: Path) -> None:
    """Undo a swap that a kill cut in half: the old run comes back under its name."""
    if not directory.exists() and _previous(directory).is_dir():
        _previous(directory).rename(directory)


def write_directory(directory: Path, files: Mapping[str, bytes]) -> None:
    """Replace a whole run directory by the given files."""
    if directory.exists() and not directory.is_dir():
        raise InputError(f"{directory} is a file: name a directory")
    with _disk_errors(directory):
        directory.parent.mkdir(parents=True, exist_ok=True)
        restore(directory)
        fresh = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
        try:
            fresh.chmod(0o755)
            for name, content in files.items():
                _write_flushed(fresh / name, content)
            _swap(fresh, directory)
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise


def _swap(fresh: Path, directory: Path) -> None:
    old = _previous(directory)
    if old.exists():
        shutil.rmtree(old)
    if directory.exists():
        directory.rename(old)
    fresh.rename(directory)
    shutil.rmtree(old, ignore_errors=True)
