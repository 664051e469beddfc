"""The directory of a trained model, and the checkpoints beside it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmkbc.errors import InputError
from lmkbc.files.atomic import Kind, check_replaceable, with_record, write_directory
from lmkbc.files.writable import same

if TYPE_CHECKING:
    from lmkbc.models.masked.entities import Entities

MODEL = Kind("a trained model", "training.json")


def check_out(out: Path, source: str) -> None:
    """Raise InputError if a trained model cannot be written to a directory. It must not be the model's source."""
    check_replaceable(out, MODEL)
    if same(out, Path(source)):
        raise InputError(f"{out} holds the model that is trained: name another directory")


def checkpoint_of(out: Path, stage: str = "all") -> Path:
    """Return the checkpoint of a training's stage. It is in a directory beside that of the model."""
    return out.with_name(f".{out.name}.checkpoints") / f"{stage}.safetensors"


def write(
    out: Path,
    model: Any,
    tokenizer: Any,
    entities: Entities | None,
    facts: Mapping[str, Any],
    more: Mapping[str, bytes] | None = None,
) -> None:
    """Write a model in a standard format, its objects and its training record, and remove the checkpoints.

    more: other files, by name. An older model in the directory is replaced. InputError if the directory holds anything
    else.
    """
    from lmkbc.models.masked.entities import FILE

    known = {} if entities is None else {FILE: entities.to_json()}
    finish(out, {**saved(model, tokenizer), **known, **(more or {})}, facts)


def saved(*parts: Any) -> dict[str, bytes]:
    """Return name -> content of the files that a model (and its tokenizer) saves."""
    from lmkbc.models.loading import quiet

    with tempfile.TemporaryDirectory() as folder, quiet():
        for part in parts:
            part.save_pretrained(folder)
        return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


def finish(out: Path, files: Mapping[str, bytes], facts: Mapping[str, Any]) -> None:
    """Write the files of a trained model with their record, and remove the checkpoints of all stages."""
    write_directory(out, with_record(MODEL, files, facts), MODEL)
    shutil.rmtree(checkpoint_of(out).parent, ignore_errors=True)
