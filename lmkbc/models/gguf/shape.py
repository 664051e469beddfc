"""The model of a GGUF file as transformers has it: its configuration, and its names of tensors.

Llama and its kin (Llama, Mistral, SmolLM2, Qwen2, Qwen3), and Gemma 3 without stretched positions (270M, 1B).
Tensors are named by the package gguf, and their sizes are those of transformers' own model. A tensor that it has no
place for is refused: it would be left out in silence, and the model would answer otherwise than it was trained to.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from gguf.constants import MODEL_ARCH
from gguf.tensor_mapping import get_tensor_name_map
from transformers import AutoConfig, AutoModelForCausalLM

from lmkbc.errors import InputError
from lmkbc.models.gguf.header import ELSEWHERE, Header, Tensor

MOST = 1 << 24
"""Largest value of any size of a model."""
GEMMA = "gemma3"
ARCHITECTURES = {"llama": "Llama", "qwen2": "Qwen2", "qwen3": "Qwen3", GEMMA: "Gemma3"}
PATTERN, LOCAL_THETA = 6, 10000.0
"""Every sixth layer of Gemma 3 sees all; the others see a window, with rotary positions of this base."""
PAIRED = {"llama": {"attn_q": "num_attention_heads", "attn_k": "num_key_value_heads"}}
"""Architecture -> tensors whose rows llama.cpp keeps in the order of rotary pairs, and how many heads they have."""
Config = Mapping[str, Any]
Place = tuple[str, tuple[int, ...], int]


@dataclass(frozen=True, slots=True)
class Placed:
    """A tensor, its name in transformers, and of how many heads its rows are paired (0: of none).

    raised: whether llama.cpp keeps it with 1 added.
    """

    tensor: Tensor
    name: str
    heads: int = 0
    raised: bool = False


def config_of(header: Header) -> Config:
    """Return what config.json says. InputError for another architecture, or sizes that no model has.

    Its dtype is for accelerators; the weights are kept as exact as the file has them.
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
        number = int(header.value(f"{name}.{key}", int, default))
        if not 0 < number <= MOST:
            raise InputError(f"{header.path}: its field {name}.{key} is {number}, which is no size; fetch it again")
        return number

    width, heads = size("embedding_length"), size("attention.head_count")
    groups, head = size("attention.head_count_kv", heads), size("attention.key_length", width // heads or 1)
    theta = header.value(f"{name}.rope.freq_base", float, 10000.0)
    epsilon = header.value(f"{name}.attention.layer_norm_rms_epsilon", float)
    turned = size("rope.dimension_count", head), size("attention.value_length", head)
    sound = all(math.isfinite(number) and number > 0 for number in (theta, epsilon))
    if not sound or heads % groups or head % 2 or turned != (head, head):
        raise _unfit(header)
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
        "rope_parameters": {"rope_type": "default", "rope_theta": theta},
        "rms_norm_eps": epsilon,
        "hidden_act": "silu",
        "tie_word_embeddings": all(tensor.name != "output.weight" for tensor in header.tensors),
        "use_sliding_window": False,
    }
    if name != GEMMA:
        return sizes
    if size("attention.sliding_window_pattern", PATTERN) != PATTERN:
        raise _unfit(header)
    return _gemma(sizes, size("attention.sliding_window"))


def _gemma(sizes: Config, window: int) -> Config:
    """Return what differs in a Gemma from Llama and its kin."""
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
    """Return every tensor of the file with its place. InputError for one too many, too few, or of another size."""
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
    """Yield names in the file -> name in transformers, shape, heads whose rows are paired.

    A model of one layer tells the shapes of all.
    """
    layers, auto = config["num_hidden_layers"], AutoConfig
    if layers > len(header.tensors):
        raise InputError(f"{header.path} lacks tensors of its {layers} layers: fetch it again")
    try:
        with torch.device("meta"):
            one_layer = AutoModelForCausalLM.from_config(auto.for_model(**{**config, "num_hidden_layers": 1}))
    except Exception:  # sizes that do not fit fail in any way
        raise _unfit(header) from None
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


def _unfit(header: Header) -> InputError:
    kind = ARCHITECTURES[header.architecture]
    return InputError(f"{header.path}: its sizes do not fit together as those of a {kind}; fetch it again")
