"""Header of a GGUF file: its fields, and the places of its tensors.

Layout: github.com/ggml-org/ggml, docs/gguf.md. The reader of the package gguf takes thirty times as long.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np

from lmkbc.errors import InputError

MAGIC = b"GGUF"
VERSIONS = (2, 3)
ALIGNMENT = 32
ELSEWHERE = "serve it with llama.cpp and name the server with --base-url, or name a directory of safetensors"
"""Advice for a sound file that is not supported here."""

_STRING, _ARRAY = 8, 9
_SCALARS = dict(enumerate(("u1", "i1", "<u2", "<i2", "<u4", "<i4", "<f4", "?"))) | {10: "<u8", 11: "<i8", 12: "<f8"}


@dataclass(frozen=True, slots=True)
class Tensor:
    """Place of a tensor in a file.

    shape: as in torch, rows first.
    kind: number format, by its name in llama.cpp, such as Q4_1.
    start: first byte.
    size: number of bytes.
    """

    name: str
    shape: tuple[int, ...]
    kind: str
    start: int
    size: int


@dataclass(frozen=True)
class Header:
    """Description of a model in its file. Arrays of numbers are NumPy arrays, arrays of strings are lists."""

    path: Path
    metadata: Mapping[str, Any]
    tensors: tuple[Tensor, ...]

    @cached_property
    def architecture(self) -> str:
        """Return llama.cpp's name of the architecture."""
        return str(self.value("general.architecture", str))

    def value(self, key: str, kind: type, default: Any = None) -> Any:
        """Return a value by its key. Raise InputError if it has another type, or is missing without a default."""
        value = self.metadata.get(key, default)
        if type(value) is not kind:
            what = "is missing" if value is None else f"is no {kind.__name__}"
            raise InputError(f"{self.path}: its field {key} {what}, so it is no model that can be read; fetch it again")
        return value


def read(path: Path) -> Header:
    """Return the header of a file. Raise InputError for another kind of file, or one that is cut short."""
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise InputError(f"{path} is no GGUF file: name one, or a directory that save_pretrained wrote")
        if (version := _number(file, "<I")) not in VERSIONS:
            raise InputError(f"{path} is of GGUF's version {version}, and versions {VERSIONS} are read: {ELSEWHERE}")
        tensors, keys = _number(file, "<Q"), _number(file, "<Q")
        metadata = {}
        for _ in range(keys):
            key = _string(file)
            metadata[key] = _value(file, _number(file, "<I"))
        described = [_described(file) for _ in range(tensors)]
        alignment = metadata.get("general.alignment", ALIGNMENT)
        base = -(-file.tell() // alignment) * alignment
    return Header(path, metadata, tuple(_placed(path, base, *one) for one in described))


def _described(file: IO[bytes]) -> tuple[str, tuple[int, ...], int, int]:
    """Return name, shape, number of the format and offset of a tensor."""
    name, axes = _string(file), _number(file, "<I")
    shape = tuple(_number(file, "<Q") for _ in range(axes))
    return name, shape[::-1], _number(file, "<I"), _number(file, "<Q")


def _placed(path: Path, base: int, name: str, shape: tuple[int, ...], number: int, offset: int) -> Tensor:
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

    try:
        kind = GGMLQuantizationType(number)
    except ValueError:
        raise InputError(
            f"{path}: tensor {name} is kept as numbers of the unknown type {number}: name the model in another "
            "quantisation, such as Q4_1 or Q8_0"
        ) from None
    block, bytes_each = GGML_QUANT_SIZES[kind]
    size = prod(shape) // block * bytes_each
    if base + offset + size > path.stat().st_size:
        raise InputError(f"{path} ends before its tensor {name} does; it is cut short or damaged, fetch it again")
    return Tensor(name, shape, kind.name, base + offset, size)


def _value(file: IO[bytes], kind: int) -> Any:
    if kind == _STRING:
        return _string(file)
    if kind != _ARRAY:
        return _numbers(file, kind, 1).item()
    inner, count = _number(file, "<I"), _number(file, "<Q")
    return [_string(file) for _ in range(count)] if inner == _STRING else _numbers(file, inner, count)


def _numbers(file: IO[bytes], kind: int, count: int) -> Any:
    form = np.dtype(_SCALARS[kind])
    return np.frombuffer(file.read(count * form.itemsize), form, count)


def _number(file: IO[bytes], form: str) -> int:
    return int(struct.unpack(form, file.read(struct.calcsize(form)))[0])


def _string(file: IO[bytes]) -> str:
    return file.read(_number(file, "<Q")).decode()
