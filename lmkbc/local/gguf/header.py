"""A GGUF file: its fields, the places of its tensors, and both in transformers' terms.

Layout: github.com/ggml-org/ggml, docs/gguf.md. The reader of the package gguf takes thirty times as long.

Supported are Llama and related models (Llama, Mistral, SmolLM2, Qwen2, Qwen3), and Gemma 3 without scaled positions
(270M, 1B). The package gguf maps the names, and transformers' model gives the shapes. An unknown tensor is refused: if
it were ignored, the model would answer differently.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from gguf.constants import GGML_QUANT_SIZES, MODEL_ARCH, GGMLQuantizationType
from gguf.tensor_mapping import get_tensor_name_map
from transformers import AutoConfig, AutoModelForCausalLM

from lmkbc.errors import InputError
from lmkbc.models.identity import pieces

MAGIC = b"GGUF"
VERSIONS = (2, 3)
ALIGNMENT = 32
MOST_AXES = 4
ELSEWHERE = "serve it with llama.cpp and name the server with --base-url, or name a directory of safetensors"
"""Advice for a sound file that is not supported here."""

_STRING, _ARRAY = 8, 9
_SCALARS = dict(enumerate(("u1", "i1", "<u2", "<i2", "<u4", "<i4", "<f4", "?"))) | {10: "<u8", 11: "<i8", 12: "<f8"}

GEMMA = "gemma3"
ARCHITECTURES = {"llama": "Llama", "qwen2": "Qwen2", "qwen3": "Qwen3", GEMMA: "Gemma3"}
PATTERN, LOCAL_THETA = 6, 10000.0
"""In Gemma 3, every sixth layer has full attention; the others have a window, and rotary positions of this base."""
PAIRED = {"llama": {"attn_q": "num_attention_heads", "attn_k": "num_key_value_heads"}}
"""Architecture -> tensor whose rows llama.cpp orders by rotary pairs -> setting with its number of heads."""
Config = Mapping[str, Any]
Place = tuple[str, tuple[int, ...], int]


@dataclass(frozen=True, slots=True)
class Tensor:
    """Place of a tensor in a file.

    path: of the file, which may be a piece of the model's.
    shape: as in torch, rows first.
    kind: number format, by its name in llama.cpp, such as Q4_1.
    start: first byte.
    size: number of bytes.
    """

    name: str
    path: Path
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
    """Return the header of a model's file, or of its first piece with the tensors of all pieces.

    Raise InputError for another kind of file, or one that is cut short.
    """
    first, *others = map(_read, pieces(path))
    return replace(first, tensors=tuple(chain(first.tensors, *(other.tensors for other in others))))


def _read(path: Path) -> Header:
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
    if axes > MOST_AXES:
        raise ValueError(f"tensor {name[:80]} has {axes} axes")
    shape = tuple(_number(file, "<Q") for _ in range(axes))
    return name, shape[::-1], _number(file, "<I"), _number(file, "<Q")


def _placed(path: Path, base: int, name: str, shape: tuple[int, ...], number: int, offset: int) -> Tensor:
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
    return Tensor(name, path, shape, kind.name, base + offset, size)


def _value(file: IO[bytes], kind: int) -> Any:
    if kind == _STRING:
        return _string(file)
    if kind != _ARRAY:
        return _numbers(file, kind, 1).item()
    inner, count = _number(file, "<I"), _number(file, "<Q")
    return [_string(file) for _ in range(count)] if inner == _STRING else _numbers(file, inner, count)


def _numbers(file: IO[bytes], kind: int, count: int) -> Any:
    form = np.dtype(_SCALARS[kind])
    return np.frombuffer(_bytes(file, count * form.itemsize), form, count)


def _number(file: IO[bytes], form: str) -> int:
    return int(struct.unpack(form, _bytes(file, struct.calcsize(form)))[0])


def _string(file: IO[bytes]) -> str:
    return _bytes(file, _number(file, "<Q")).decode()


def _bytes(file: IO[bytes], size: int) -> bytes:
    """Read bytes. EOFError if the file has fewer, before memory is taken for what a damaged length promises."""
    if size > os.fstat(file.fileno()).st_size - file.tell():
        raise EOFError("it ends too early")
    return file.read(size)


@dataclass(frozen=True, slots=True)
class Placed:
    """A tensor with its name in transformers.

    heads: number of heads whose rows are in the order of rotary pairs; 0 for none. raised: whether llama.cpp stores it
    with 1 added.
    """

    tensor: Tensor
    name: str
    heads: int = 0
    raised: bool = False


def config_of(header: Header) -> Config:
    """Return the content of config.json. Raise InputError for a model that is not supported.

    The dtype is meant for accelerators; the weights stay as exact as in the file.
    """
    name = header.architecture
    if name not in ARCHITECTURES:
        raise InputError(
            f"{header.path} holds a model of the architecture {name!r}, and {', '.join(ARCHITECTURES)} are read: "
            f"{ELSEWHERE}"
        )
    stretched = header.value(f"{name}.rope.scaling.type", str, "none")
    if stretched != "none":
        raise InputError(f"{header.path} stretches its positions ({stretched!r}), which is not read: {ELSEWHERE}")

    def size(key: str, default: int | None = None) -> int:
        return int(header.value(f"{name}.{key}", int, default))

    width, heads = size("embedding_length"), size("attention.head_count")
    groups, head = size("attention.head_count_kv", heads), size("attention.key_length", width // heads)
    if {size("rope.dimension_count", head), size("attention.value_length", head)} != {head}:
        raise InputError(f"{header.path} has parts of heads of other sizes than {head}, which is not read: {ELSEWHERE}")
    sizes = {
        "architectures": [f"{ARCHITECTURES[name]}ForCausalLM"],
        "model_type": name,
        "dtype": "bfloat16",
        "num_hidden_layers": size("block_count"),
        "hidden_size": width,
        "intermediate_size": size("feed_forward_length"),
        "num_attention_heads": heads,
        "num_key_value_heads": groups,
        "head_dim": head,
        "vocab_size": len(header.value("tokenizer.ggml.tokens", list)),
        "max_position_embeddings": size("context_length"),
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": header.value(f"{name}.rope.freq_base", float, 10000.0),
        },
        "rms_norm_eps": header.value(f"{name}.attention.layer_norm_rms_epsilon", float),
        "hidden_act": "silu",
        "tie_word_embeddings": all(tensor.name != "output.weight" for tensor in header.tensors),
        "use_sliding_window": False,
    }
    if name != GEMMA:
        return sizes
    if (pattern := size("attention.sliding_window_pattern", PATTERN)) != PATTERN:
        raise InputError(f"{header.path} has full attention in every {pattern}th layer, which is not read: {ELSEWHERE}")
    return _gemma(sizes, size("attention.sliding_window"))


def _gemma(sizes: Config, window: int) -> Config:
    """Return the configuration of a Gemma, from that of a Llama."""
    rope = sizes["rope_parameters"]
    return {
        **sizes,
        "model_type": f"{GEMMA}_text",
        "rope_parameters": {"full_attention": rope, "sliding_attention": {**rope, "rope_theta": LOCAL_THETA}},
        "hidden_act": "gelu_pytorch_tanh",
        "use_sliding_window": True,
        "query_pre_attn_scalar": sizes["head_dim"],
        "sliding_window": window,
    }


def placed(header: Header, config: Config) -> list[Placed]:
    """Return all tensors of the file with their names. Raise InputError for missing, unknown or misshapen ones."""
    if (layers := config["num_hidden_layers"]) > len(header.tensors):
        raise InputError(
            f"{header.path} has {len(header.tensors)} tensors, and its fields say {layers} layers: fetch it again"
        )
    wanted = dict(_wanted(header, config))
    here = {tensor.name: tensor for tensor in header.tensors}
    if lacking := sorted(wanted.keys() - here.keys()):
        raise InputError(f"{header.path} lacks the tensor {lacking[0]}: fetch the whole model again")
    if unknown := sorted(here.keys() - wanted.keys()):
        kind = ARCHITECTURES[header.architecture]
        raise InputError(f"{header.path} has a tensor {unknown[0]}, which a {kind} has no place for: {ELSEWHERE}")
    for name, (_, shape, _) in wanted.items():
        if here[name].shape != shape:
            raise InputError(
                f"{header.path}: its tensor {name} has the shape {here[name].shape}, its fields say {shape}; "
                "fetch it again"
            )
    return [
        Placed(here[name], new, heads, header.architecture == GEMMA and name.endswith("norm.weight"))
        for name, (new, _, heads) in wanted.items()
    ]


def _wanted(header: Header, config: Config) -> Iterator[tuple[str, Place]]:
    """Yield the file's name of each tensor, with its name in transformers, its shape, and its heads with paired rows.

    The shapes of all layers follow from a model of one layer.
    """
    layers = config["num_hidden_layers"]
    with torch.device("meta"):
        one_layer = AutoModelForCausalLM.from_config(AutoConfig.for_model(**{**config, "num_hidden_layers": 1}))
    names = get_tensor_name_map(MODEL_ARCH[header.architecture.upper()], 1)
    for name, value in one_layer.state_dict().items():
        part, _, end = name.rpartition(".")
        called = str(names.get_name(part))
        heads = config.get(PAIRED.get(header.architecture, {}).get(called.removeprefix("blk.0."), ""), 0)
        if called == "output" and config["tie_word_embeddings"]:
            continue
        for layer in range(layers if called.startswith("blk.") else 1):
            new = name.replace("layers.0.", f"layers.{layer}.")
            yield f"{called.replace('blk.0.', f'blk.{layer}.')}.{end}", (new, tuple(value.shape), heads)
