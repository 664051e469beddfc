"""Checks of a model directory before it is loaded: sizes within bounds, and undamaged files.

A forged vocabulary would fill the memory. A model with a damaged bit in its weights still answers, but differently, and
no file format for weights detects it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import msgspec

from lmkbc.errors import InputError
from lmkbc.files.checksum import damaged, read_record
from lmkbc.files.packed import DOCUMENT, whole
from lmkbc.models.files import READ

WORDS = 300_000
"""Maximum number of words of a vocabulary; the largest model families have 262,144."""
MERGES = 1_200_000
"""Maximum number of strings in a list of merges; a merge has one or two."""
LARGER = {"tokenizer.json": 48 << 20, "model.safetensors.index.json": 24 << 20, "entities.json": 24 << 20}
"""File -> most bytes, for files that may be larger than others."""
MARKS = {"vocab.txt": b"\n", "merges.txt": b"\n", "vocab.json": b'":'}
"""File -> bytes that occur once per word or merge."""
WEIGHTS = ".safetensors"
TRAINING = "training.json"
"""Record of a training; its field `outputs` lists the files with their SHA-256."""


POINTER, SHORT = b"version https://git-lfs", 1024
"""Beginning of a file that stands for another one, and the bytes that it never exceeds."""
JSON = ("config.json", "tokenizer.json", "tokenizer_config.json")
"""Files that a model cannot be loaded without, if they are there."""

Read = TypeVar("Read")


class _Model(msgspec.Struct, frozen=True):
    vocab: msgspec.Raw = msgspec.Raw(b"")
    merges: msgspec.Raw = msgspec.Raw(b"")


class _Tokenizer(msgspec.Struct):
    model: _Model = _Model()


def check_sizes(directory: Path) -> None:
    """Raise InputError if a model directory holds a device file, or files larger than any model needs."""
    if not directory.is_dir():
        return
    for path in sorted(path for path in directory.iterdir() if path.suffix in READ and not path.is_dir()):
        if not path.is_file():
            raise InputError(f"{path} is no regular file: fetch or save the model again")
        if path.stat().st_size < SHORT and path.read_bytes().startswith(POINTER):
            raise InputError(f"{path} is a pointer of Git LFS, not the file itself: fetch it with git lfs pull")
        most = LARGER.get(path.name, DOCUMENT)
        if path.suffix != WEIGHTS and path.stat().st_size > most:
            raise InputError(f"{path} has more than {most >> 20} MiB, which no model needs: fetch or save it again")
        words, merges = _counts(path)
        if words > WORDS or merges > MERGES:
            raise InputError(
                f"{path} lists {words:,} words and {merges:,} parts of merges, and models of up to {WORDS:,} and "
                f"{MERGES:,} are read: name another model"
            )


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
        return msgspec.json.decode(_content(path), type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path} cannot be read as JSON ({error}): fetch or save its model again") from None


def _counts(path: Path) -> tuple[int, int]:
    """Return the numbers of words and merges in a file. Raise InputError for damaged JSON."""
    if mark := MARKS.get(path.name):
        count = _content(path).count(mark)
        return (0, count) if path.name == "merges.txt" else (count, 0)
    if path.name not in JSON:
        return 0, 0
    if path.name != "tokenizer.json":
        read_json(path, dict[str, Any])
        return 0, 0
    model = read_json(path, _Tokenizer).model
    vocab, merges = bytes(model.vocab), bytes(model.merges)
    return max(vocab.count(b'":'), vocab.count(b"[") - 1), merges.count(b'"') // 2


def _content(path: Path) -> bytes:
    return whole(path, LARGER.get(path.name, DOCUMENT))
