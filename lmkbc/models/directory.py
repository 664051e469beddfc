"""Checks of a model directory before it is loaded: whole and undamaged files.

A model with a damaged bit in its weights still answers, but differently, and no file format for weights detects it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from lmkbc.errors import InputError
from lmkbc.files.checksum import damaged, read_record
from lmkbc.files.reader import whole
from lmkbc.models.files import READ

TRAINING = "training.json"
"""Record of a training; its field `outputs` lists the files with their SHA-256."""


POINTER, SHORT = b"version https://git-lfs", 1024
"""Beginning of a file that stands for another one, and the bytes that it never exceeds."""

JSON = ("config.json", "tokenizer.json", "tokenizer_config.json")
"""Files that a model cannot be loaded without, if they are there."""

Read = TypeVar("Read")


def check_fetched(directory: Path) -> None:
    """Raise InputError for what a broken download leaves: a pointer of Git LFS, or JSON that is cut off."""
    for path in sorted(directory.iterdir()) if directory.is_dir() else ():
        short = path.suffix in READ and path.is_file() and path.stat().st_size < SHORT
        if short and path.read_bytes().startswith(POINTER):
            raise InputError(f"{path} is a pointer of Git LFS, not the file itself: fetch it with git lfs pull")
        if path.name in JSON:
            read_json(path, msgspec.Raw)


def check_damage(directory: Path) -> None:
    """Raise InputError if a trained file is missing or has changed. Pass if the training left no record."""
    path = directory / TRAINING
    if path.is_file() and (lost := next(damaged(directory, read_record(path).outputs), None)):
        raise InputError(
            f"{directory / lost} is not what the training wrote: copy it again or train again; or remove {TRAINING} to "
            "take the model as it is"
        )


def read_json(path: Path, kind: type[Read]) -> Read:
    """Return the content of a JSON file of a model. Raise InputError for a damaged file."""
    try:
        return msgspec.json.decode(whole(path), type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path} cannot be read as JSON ({error}): fetch or save its model again") from None
