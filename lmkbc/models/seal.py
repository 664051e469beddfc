"""Checksums of a trained directory: damage is seen before a model answers with it.

A model whose weights lost a bit answers all the same, only otherwise; no file format that holds weights notices.
"""

from __future__ import annotations

from pathlib import Path

from lmkbc.errors import InputError
from lmkbc.files.checksum import damaged, read_record

FILE = "training.json"
"""What a training says of itself; its field `outputs` lists the files."""


def check(directory: Path) -> None:
    """Raise InputError where a file is gone or another than was written; pass where there is no record."""
    path = directory / FILE
    if path.is_file() and (lost := next(damaged(directory, read_record(path).outputs), None)):
        raise InputError(
            f"{directory / lost} is not what the training wrote: copy it again or train again; or remove {FILE} to "
            "take the model as it is"
        )
