"""Directories of files: the official splits, and the user's cache."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import platformdirs

from lmkbc.errors import InputError

log = logging.getLogger(__name__)
DATA = "LMKBC_DATA"
"""Variable with the directory of the official splits."""
SOURCE = "source"
"""File beside answers in the cache, with the path of the user's file that they were made from."""


def cache_dir() -> Path:
    """Return the user's cache directory for downloaded data and fitted defaults."""
    return Path(platformdirs.user_cache_dir("lmkbc"))


def given_as(path: Path) -> Path:
    """Return the user's own file that a recorded file was made from; else the file itself."""
    source = path.parent / SOURCE
    return Path(source.read_text("utf-8")) if source.is_relative_to(cache_dir()) and source.is_file() else path


class RecordedFile(NamedTuple):
    """Recorded answers for one generator. models: models whose rows are used; None for all."""

    path: Path
    models: frozenset[str] | None = None

    def __str__(self) -> str:
        """Return the file as it was given, and the models that are read of it."""
        named = ", ".join(sorted(name or "without a model" for name in self.models or ()))
        return f"{given_as(self.path)} ({named})" if named else str(given_as(self.path))


def name_of(path: Path) -> str:
    """Return a file's name as text; its bytes that are no UTF-8 become U+FFFD."""
    return os.fsencode(path.name).decode(errors="replace")


def placed(path: Path | str | None) -> Path | None:
    """Return a path that may be given as text; None stays None."""
    return None if path is None else Path(path)


def all_placed(paths: Sequence[Path | str] | Path | str | None) -> tuple[Path, ...]:
    """Return paths that may be given as texts; a single one may be given alone."""
    return (Path(paths),) if isinstance(paths, Path | str) else tuple(map(Path, paths or ()))


def warn_unwritable(folder: Path, error: BaseException | None, consequence: str) -> None:
    """Log that a cache folder is not writable. The run continues, since a cache only saves work."""
    reason = getattr(error, "strerror", None) or error
    log.warning(
        "%s cannot be written (%s), so %s: name a folder for caches in XDG_CACHE_HOME", folder, reason, consequence
    )


def fetched_frames(system: str) -> Path:
    """Return the file into which 'lmkbc systems fetch' writes the prompts of a system's authors."""
    return cache_dir() / "systems" / system / "frames.toml"


def fetched_record(system: str) -> Path:
    """Return where the SHA-256 of a system's fetched files stand, of their addresses and of what was made of them."""
    return fetched_frames(system).with_name("sha256.txt")


def data_dirs(given: Path | None) -> list[Path]:
    """Return the directories to search for splits, in order: the given one, else $LMKBC_DATA, else the cache."""
    if given is not None:
        if not given.is_dir():
            raise InputError(
                f"{given} is not a directory: --data takes the directory that holds lmkbc2023/ and the like"
            )
        return [given]
    env = os.environ.get(DATA)
    return [Path(env)] if env else [cache_dir() / "data"]


def warn_no_data_dir() -> None:
    """Log a warning if $LMKBC_DATA is set and is not a directory."""
    env = os.environ.get(DATA)
    if env and not Path(env).is_dir():
        log.warning("%s is %r, which is no directory: no official split is found there", DATA, env)
