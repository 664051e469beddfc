"""Conversion of a GGUF file into a model directory in the user's cache: exact weights in float32, as safetensors.

The directory's name holds the file's SHA-256 and VERSION, so the file may lie anywhere. The directory holds the SHA-256
of its files; if one is damaged, it is made again. One process converts at a time, and others wait for it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from lmkbc.errors import InputError
from lmkbc.files.atomic import staged
from lmkbc.files.checksum import damaged, file_sha256
from lmkbc.files.places import cache_dir
from lmkbc.files.writable import in_turn
from lmkbc.models.gguf import header, tokenizer
from lmkbc.models.gguf.header import Placed, config_of, placed
from lmkbc.models.identity import file_digest

logger = logging.getLogger("lmkbc")
VERSION = 1
"""Version of the conversion; each version makes its own directory."""
RECORD = "unpacked.json"
"""Name of the file that lists the others with their SHA-256."""
SHARD = 1 << 30
"""Maximum number of bytes of weights in memory at a time, and in one file."""


def unpacked(path: Path) -> Path:
    """Return the directory of a GGUF file's model; it is made if it does not exist.

    Raise InputError for a damaged or unsupported file, LmkbcError if the cache cannot be written.
    """
    _check_file(path)
    target = cache_dir() / "models" / f"{file_digest(str(path))}-{VERSION}"
    if not _sound(target):
        with in_turn(target):
            if not _sound(target):
                _unpack(path, target)
    return target


def write_settings(path: Path, folder: Path) -> Sequence[Placed]:
    """Write all files of a GGUF file's model except the weights; return the tensors.

    Raise InputError for a damaged or unsupported file.
    """
    _check_file(path)
    try:
        parsed = header.read(path)
        config = config_of(parsed)
        read = tokenizer.tokenizer(parsed, config["max_position_embeddings"])
        places = placed(parsed, config)
    except InputError:
        raise
    except Exception as error:  # a damaged file may raise any error
        reason = " ".join(str(error).split())[:200].rstrip(". ") or type(error).__name__
        raise InputError(f"{path} cannot be read ({reason}): it is cut short or damaged, fetch it again") from None
    tasks = {name: tokenizer.token_id(parsed, name) for name in ("bos", "eos", "padding", "eot", "eom")}
    special = {"bos_token_id": tasks["bos"], "eos_token_id": tasks["eos"], "pad_token_id": tasks["padding"]}
    stops = [token for token in dict.fromkeys(tasks[end] for end in ("eos", "eot", "eom")) if token is not None]
    tables = {"config.json": {**config, **special}, "generation_config.json": special | {"eos_token_id": stops}}
    for name, table in tables.items():
        (folder / name).write_text(json.dumps(table, indent=2), encoding="utf-8")
    with _disk_errors():
        read.save_pretrained(folder)
    return places


def _check_file(path: Path) -> None:
    if not path.is_file():
        raise InputError(f"{path} is no file: name a GGUF file, a model directory or a model of the hub")


def _unpack(path: Path, target: Path) -> None:
    with staged(target) as stage:
        places = write_settings(path, stage)
        logger.info(f"{path.name}: its weights are unpacked into the user's cache, which is done once")
        _write_weights(path, places, stage)
        files = {file.name: file_sha256(file) for file in sorted(stage.iterdir())}
        (stage / RECORD).write_text(json.dumps(files, indent=2), encoding="utf-8")


def _write_weights(path: Path, placed: Sequence[Placed], stage: Path) -> None:
    from huggingface_hub import split_state_dict_into_shards_factory
    from safetensors.numpy import save_file

    by_name = {part.name: part for part in placed}
    split = split_state_dict_into_shards_factory(
        by_name,
        get_storage_size=lambda part: 4 * int(np.prod(part.tensor.shape)),
        filename_pattern="model{suffix}.safetensors",
        max_shard_size=SHARD,
    )
    for name, inside in split.filename_to_tensors.items():
        weights = {part: _values(path, by_name[part]) for part in inside}
        with _disk_errors():
            save_file(weights, stage / name, metadata={"format": "pt"})
    if split.is_sharded:
        index = {"metadata": split.metadata, "weight_map": split.tensor_to_filename}
        (stage / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")


@contextmanager
def _disk_errors() -> Iterator[None]:
    """Turn all write errors into OSError, since tokenizers and safetensors raise types of their own."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise OSError(str(error)) from None


def _values(path: Path, placed: Placed) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return a tensor's numbers, in the order of transformers."""
    from gguf.constants import GGMLQuantizationType
    from gguf.quants import dequantize

    tensor = placed.tensor
    raw = np.fromfile(path, np.uint8, tensor.size, offset=tensor.start)
    try:
        numbers: np.ndarray[Any, np.dtype[np.float32]] = dequantize(
            raw.reshape(*tensor.shape[:-1], -1), GGMLQuantizationType[tensor.kind]
        )
    except NotImplementedError:
        raise InputError(
            f"{path}: tensor {tensor.name} is quantised as {tensor.kind}, which cannot be unpacked: name the model in "
            "another quantisation, such as Q4_1 or Q8_0"
        ) from None
    if placed.heads:  # rows r0 i0 r1 i1 ... of each head become r0 r1 ... i0 i1 ..., as in transformers
        numbers = numbers.reshape(placed.heads, -1, 2, tensor.shape[1]).swapaxes(1, 2)
    if placed.raised:
        numbers = numbers - np.float32(1)
    return np.ascontiguousarray(numbers).reshape(tensor.shape)


def _sound(target: Path) -> bool:
    """Return whether a directory holds exactly the files that were written."""
    try:
        files = msgspec.json.decode((target / RECORD).read_bytes(), type=dict[str, str])
        return bool(files) and not any(damaged(target, files))
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return False
