"""Header of a GGUF file, read as untrusted data.

Layout: github.com/ggml-org/ggml, docs/gguf.md. The package gguf reads such files too, but trusts every length in them;
for example, it walks through a claimed array of 2^60 entries. Here a length is used only if the file is long enough.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np

from lmkbc.errors import InputError

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MOST_BYTES = 64 << 20
"""Maximum number of bytes of a header; a vocabulary of 256,000 tokens with its merges takes 15 MiB."""
MOST_STRINGS = 800_000
"""Maximum number of strings in all arrays; each takes 60 bytes or more in Python, and 300 more in a tokenizer."""
MOST_KEYS = MOST_TENSORS = 1 << 16
MOST_AXES = 4
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
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            what = "is missing" if value is None else f"is no {kind.__name__}"
            raise InputError(f"{self.path}: its field {key} {what}, so it is no model that can be read; fetch it again")
        return value


def read(path: Path) -> Header:
    """Return the header of a file. Raise InputError if it is no GGUF file, or is cut off, damaged or out of bounds."""
    try:
        with path.open("rb") as file:
            return _Reading(path, file).header()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}; name a GGUF file") from None


class _Reading:
    """Reader of a header, with its position in the file."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self._path, self._file = path, file
        self._size = os.fstat(file.fileno()).st_size
        self._place = self._strings = 0

    def header(self) -> Header:
        if self._size < len(MAGIC) or self._take(len(MAGIC)) != MAGIC:
            raise InputError(f"{self._path} is no GGUF file: name one, or a directory that save_pretrained wrote")
        version = self._number("<I")
        self._require(version in VERSIONS, f"is of GGUF's version {version}, and versions {VERSIONS} are read")
        tensors, keys = self._number("<Q"), self._number("<Q")
        few = tensors <= MOST_TENSORS and keys <= MOST_KEYS
        self._require(few, f"claims {tensors} tensors and {keys} fields, which no model has")
        metadata = {}
        for _ in range(keys):
            key = self._string()
            self._require(key not in metadata, f"has the field {key} twice")
            metadata[key] = self._value(self._number("<I"))
        infos = [self._info() for _ in range(tensors)]
        return Header(self._path, metadata, tuple(self._placed(infos, metadata.get("general.alignment", ALIGNMENT))))

    def _value(self, kind: int) -> Any:
        if kind == _STRING:
            return self._string()
        if kind in _SCALARS:
            return self._numbers(kind, 1).item()
        self._require(kind == _ARRAY, f"has a field of the unknown type {kind}")
        inner, count = self._number("<I"), self._number("<Q")
        if inner in _SCALARS:
            return self._numbers(inner, count)
        self._require(inner == _STRING, f"has an array of the type {inner}, which no model needs")
        self._strings += count
        self._require(self._strings <= MOST_STRINGS, f"claims {self._strings} strings, which no model has")
        return [self._string() for _ in range(count)]

    def _info(self) -> tuple[str, tuple[int, ...], int, int]:
        name, axes = self._string(), self._number("<I")
        self._require(1 <= axes <= MOST_AXES, f"has a tensor of {axes} axes")
        shape = tuple(self._number("<Q") for _ in range(axes))
        return name, shape[::-1], self._number("<I"), self._number("<Q")

    def _placed(self, infos: list[tuple[str, tuple[int, ...], int, int]], alignment: Any) -> list[Tensor]:
        from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

        if not isinstance(alignment, int) or not 8 <= alignment <= MOST_BYTES or alignment & (alignment - 1):
            raise self._refused(f"has the alignment {alignment}")
        base = -(-self._place // alignment) * alignment
        tensors = []
        for name, shape, number, offset in infos:
            try:
                kind = GGMLQuantizationType(number)
            except ValueError:
                raise InputError(
                    f"{self._path}: tensor {name} is kept as numbers of the unknown type {number}: name the model in "
                    "another quantisation, such as Q4_1 or Q8_0"
                ) from None
            block, bytes_each = GGML_QUANT_SIZES[kind]
            size = prod(shape) // block * bytes_each
            misplaced = not size or shape[-1] % block or offset % alignment or base + offset + size > self._size
            self._require(not misplaced, f"ends before its tensor {name} does, or that is misplaced")
            tensors.append(Tensor(name, shape, kind.name, base + offset, size))
        self._require(len({tensor.name for tensor in tensors}) == len(tensors), "names a tensor twice")
        ordered = pairwise(sorted(tensors, key=lambda tensor: tensor.start))
        apart = all(tensor.start + tensor.size <= following.start for tensor, following in ordered)
        self._require(apart, "keeps two tensors in one place")
        return tensors

    def _numbers(self, kind: int, count: int) -> Any:
        form = np.dtype(_SCALARS[kind])
        return np.frombuffer(self._take(count * form.itemsize), form)

    def _number(self, form: str) -> int:
        return int(struct.unpack(form, self._take(struct.calcsize(form)))[0])

    def _string(self) -> str:
        try:
            return self._take(self._number("<Q")).decode()
        except UnicodeDecodeError:
            raise self._refused("has a text that is no UTF-8") from None

    def _take(self, count: int) -> bytes:
        if self._place + count > self._size:
            raise self._refused(f"needs {count} bytes more than it has")
        if self._place + count > MOST_BYTES:
            raise self._refused(f"has a header of more than {MOST_BYTES >> 20} MiB")
        self._place += count
        return self._file.read(count)

    def _require(self, holds: bool, otherwise: str) -> None:
        if not holds:
            raise self._refused(otherwise)

    def _refused(self, what: str) -> InputError:
        return InputError(
            f"{self._path}, byte {self._place}: this GGUF file {what}; it is cut short or damaged, fetch it again"
        )
