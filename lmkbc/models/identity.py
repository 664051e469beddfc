"""Models that are named by a path: names without the path for portable files, and identities by content."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from lmkbc.errors import InputError, counted

READ = (".gguf", ".json", ".safetensors", ".jinja", ".model", ".txt")
"""Suffixes of files that influence a model's answers: weights, settings, vocabularies, templates."""

BUNDLED = ("frames", "file")
"""Settings of a recipe that hold a path or the name of a bundled file, optionally with "#PART"."""

SETTINGS = ("model", "path", "vectors", *BUNDLED)
"""Settings of a recipe that may hold a path."""

_WAY = re.compile(r"^[/~.]|^[A-Za-z]:|\\|\.(?:gguf|safetensors|jsonl|json|txt|gz|toml(?:#.*)?)$")

_PIECE = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$", re.IGNORECASE)
"""End of the name of a piece of a GGUF model, with its place and the number of all, as gguf-split writes it."""


def is_path(name: str) -> bool:
    """Return whether a name is a path to a file or directory, here or on a server; a hub's "owner/name" is none."""
    return bool(_WAY.search(name)) or ("/" in name and os.path.exists(name))


def model_name(name: str) -> str:
    """Return a model's name without its path, so that a run's files do not show a user's directories."""
    return re.split(r"[/\\]", name.rstrip("/\\"))[-1] if is_path(name) else name


def same_model(wanted: str, served: str) -> bool:
    """Return whether a served name is the wanted one, a dated or revised form of it, or the same without the owner."""
    wanted, served = wanted.casefold(), served.casefold()
    ours, theirs = (re.split(r"[/\\]", name)[-1] for name in (wanted, served))
    return not served or theirs in (ours, f"{ours}.gguf") or theirs.startswith((f"{ours}-20", f"{ours}@", f"{ours}:"))


def model_identity(name: str) -> str:
    """Return what distinguishes models of the same name: the SHA-256 of the files, or of a path that is not here.

    Return "" if the name is no path.
    """
    if not is_path(name):
        return ""
    return file_digest(name) if os.path.exists(name) else hashlib.sha256(name.encode()).hexdigest()


def file_digest(path: str) -> str:
    """Return the SHA-256 of a file, or of a model directory's files."""
    return _digest(path, *_state(Path(path)))


def portable(value: Any) -> Any:
    """Return a recipe's tables with names in place of paths."""
    if isinstance(value, Mapping):
        return {
            key: model_name(inner) if key in SETTINGS and isinstance(inner, str) else portable(inner)
            for key, inner in value.items()
        }
    return [portable(inner) for inner in value] if isinstance(value, list | tuple) else value


def paths_in(value: Any) -> Iterator[str]:
    """Yield the local files and directories that a recipe's tables name."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            place = inner.partition("#")[0] if key in BUNDLED and isinstance(inner, str) else inner
            if key in SETTINGS and isinstance(place, str) and os.path.exists(place):
                yield from [place] if key not in BUNDLED or is_path(place) else []
            else:
                yield from paths_in(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from paths_in(inner)


def pieces(path: Path) -> list[Path]:
    """Return the files of a GGUF model by any of them: all pieces of a model in pieces, else the file itself.

    Raise InputError, with its name, for a piece that is missing.
    """
    if (named := _PIECE.search(path.name)) is None:
        return [path]
    count = int(named[2])
    files = [
        path.with_name(f"{path.name[: named.start()]}-{place:05d}-of-{named[2]}.gguf") for place in range(1, count + 1)
    ]
    if lacking := [file.name for file in files if not file.is_file()]:
        raise InputError(
            f"{path} is one of {counted(count, 'piece')} of a model, and {path.parent} lacks {', '.join(lacking)}: "
            "fetch all of them into one folder"
        )
    return files


def _parts(path: Path) -> list[Path]:
    return sorted(file for file in path.iterdir() if file.suffix in READ) if path.is_dir() else pieces(path)


def _state(path: Path) -> Iterator[tuple[str, int, int]]:
    for file in _parts(path):
        status = file.stat()
        yield file.name, status.st_size, status.st_mtime_ns


@lru_cache(maxsize=64)
def _digest(path: str, *_: tuple[str, int, int]) -> str:
    place, whole = Path(path), hashlib.sha256()
    for part in _parts(place):
        with part.open("rb") as file:
            hashed = hashlib.file_digest(file, "sha256")
        if part == place and not _PIECE.search(path):
            return hashed.hexdigest()
        whole.update(part.name.encode() + hashed.digest())
    return whole.hexdigest()
