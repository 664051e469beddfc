"""Seals: a trained directory tells what its files are, so that damage is seen before a model answers with it.

A model whose weights lost a bit answers all the same, only otherwise; no file format that holds weights notices.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from lmkbc.errors import InputError
from lmkbc.files.packed import whole

FILE = "training.json"
"""What a training says of itself; its field `outputs` is the seal."""


MOST_BYTES = 1 << 20


class _Training(msgspec.Struct):
    outputs: dict[str, str] = {}


def check(directory: Path) -> None:
    """InputError where a sealed directory lacks a file, or holds another than was written. Others are none of ours."""
    path = directory / FILE
    if not path.is_file():
        return
    try:
        files = msgspec.json.decode(whole(path, MOST_BYTES), type=_Training).outputs
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path} cannot be read ({error}): train the model again") from None
    for name, digest in files.items():
        if _digest(directory / name) != digest:
            raise InputError(
                f"{directory / name} is not what the training wrote: copy it again or train again; or remove {FILE} to "
                "take the model as it is"
            )


def _digest(path: Path) -> str:
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
