"""What a GGUF file's model is to transformers: its configuration, and what each tensor is called there.

Llama and its kin only (Llama, Mistral, SmolLM2, Qwen2, Qwen3). A tensor that the configuration has no place for is
refused: it would be left out in silence, and the model would answer otherwise than it was trained to.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lmkbc.errors import InputError
from lmkbc.models.gguf.header import ELSEWHERE, Header, Tensor

MOST = 1 << 24
"""Of any size that a model has."""

_OUTSIDE = {"token_embd.weight": "model.embed_tokens", "output_norm.weight": "model.norm", "output.weight": "lm_head"}
_BLOCK = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


@dataclass(frozen=True, slots=True)
class Kin:
    """An architecture. paired: llama.cpp keeps the rows of queries and keys in the order of rotary pairs.

    biases, norms: which projections have a bias, and whether queries and keys are normed.
    """

    name: str
    paired: bool = False
    biases: tuple[str, ...] = ()
    norms: bool = False


ARCHITECTURES = {
    "llama": Kin("Llama", paired=True),
    "qwen2": Kin("Qwen2", biases=("attn_q", "attn_k", "attn_v")),
    "qwen3": Kin("Qwen3", norms=True),
}


@dataclass(frozen=True, slots=True)
class Placed:
    """A tensor, its name in transformers, and of how many heads its rows are paired (0: of none)."""

    tensor: Tensor
    name: str
    heads: int = 0


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a model, as its file gives them."""

    header: Header
    kin: Kin
    layers: int
    width: int
    inner: int
    heads: int
    groups: int
    head: int
    vocabulary: int
    window: int
    theta: float
    epsilon: float

    @classmethod
    def of(cls, header: Header) -> Shape:
        """The sizes. InputError for another architecture, or sizes that no model has."""
        name = header.architecture
        if name not in ARCHITECTURES:
            raise InputError(
                f"{header.path} holds a model of the architecture {name!r}, and {', '.join(ARCHITECTURES)} are read: "
                f"{ELSEWHERE}"
            )
        _check_positions(header, name)

        def size(key: str, default: int | None = None) -> int:
            number = int(header.value(f"{name}.{key}", int, default))
            if not 0 < number <= MOST:
                raise InputError(f"{header.path}: its field {name}.{key} is {number}, which is no size; fetch it again")
            return number

        width, heads = size("embedding_length"), size("attention.head_count")
        made = cls(
            header=header,
            kin=ARCHITECTURES[name],
            layers=size("block_count"),
            width=width,
            inner=size("feed_forward_length"),
            heads=heads,
            groups=size("attention.head_count_kv", heads),
            head=size("attention.key_length", width // heads or 1),
            vocabulary=len(header.value("tokenizer.ggml.tokens", list)),
            window=size("context_length"),
            theta=header.value(f"{name}.rope.freq_base", float, 10000.0),
            epsilon=header.value(f"{name}.attention.layer_norm_rms_epsilon", float),
        )
        turned = size("rope.dimension_count", made.head), size("attention.value_length", made.head)
        sound = all(math.isfinite(number) and number > 0 for number in (made.theta, made.epsilon))
        if not sound or made.heads % made.groups or made.head % 2 or turned != (made.head, made.head):
            raise InputError(
                f"{header.path}: its sizes do not fit together as those of a {made.kin.name}; fetch it again"
            )
        return made

    @property
    def tied(self) -> bool:
        """Whether what reads tokens also writes them."""
        return all(tensor.name != "output.weight" for tensor in self.header.tensors)

    def config(self) -> dict[str, Any]:
        """What config.json says. Its dtype is for accelerators; the weights are kept as exact as the file has them."""
        return {
            "architectures": [f"{self.kin.name}ForCausalLM"],
            "model_type": self.kin.name.lower(),
            "dtype": "bfloat16",
            "num_hidden_layers": self.layers,
            "hidden_size": self.width,
            "intermediate_size": self.inner,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.groups,
            "head_dim": self.head,
            "vocab_size": self.vocabulary,
            "max_position_embeddings": self.window,
            "rope_parameters": {"rope_type": "default", "rope_theta": self.theta},
            "rms_norm_eps": self.epsilon,
            "hidden_act": "silu",
            "tie_word_embeddings": self.tied,
            "use_sliding_window": False,
        }

    def placed(self) -> list[Placed]:
        """Every tensor of the file with its place. InputError for one too many, too few, or of another size."""
        wanted = dict(self._wanted())
        here = {tensor.name: tensor for tensor in self.header.tensors}
        if lacking := sorted(wanted.keys() - here.keys()):
            raise InputError(f"{self.header.path} lacks the tensor {lacking[0]}: fetch the whole model again")
        if unknown := sorted(here.keys() - wanted.keys()):
            raise InputError(
                f"{self.header.path} has a tensor {unknown[0]}, which a {self.kin.name} has no place for: {ELSEWHERE}"
            )
        for name, (_, shape, _) in wanted.items():
            if here[name].shape != shape:
                raise InputError(
                    f"{self.header.path}: its tensor {name} has the shape {here[name].shape}, its fields say {shape}; "
                    "fetch it again"
                )
        return [Placed(here[name], new, heads) for name, (new, _, heads) in wanted.items()]

    def _wanted(self) -> Iterator[tuple[str, tuple[str, tuple[int, ...], int]]]:
        """Names in the file -> name in transformers, shape, heads whose rows are paired."""
        if self.layers > len(self.header.tensors):
            raise InputError(f"{self.header.path} lacks tensors of its {self.layers} layers: fetch it again")
        for name, new in _OUTSIDE.items():
            if name != "output.weight" or not self.tied:
                sizes = (self.width,) if name == "output_norm.weight" else (self.vocabulary, self.width)
                yield name, (f"{new}.weight", sizes, 0)
        queries, keys = self.heads * self.head, self.groups * self.head
        shapes: dict[str, tuple[int, ...]] = {
            "attn_q": (queries, self.width),
            "attn_k": (keys, self.width),
            "attn_v": (keys, self.width),
            "attn_output": (self.width, queries),
            "ffn_gate": (self.inner, self.width),
            "ffn_up": (self.inner, self.width),
            "ffn_down": (self.width, self.inner),
            "attn_norm": (self.width,),
            "ffn_norm": (self.width,),
        }
        if self.kin.norms:
            shapes |= {"attn_q_norm": (self.head,), "attn_k_norm": (self.head,)}
        paired = {"attn_q": self.heads, "attn_k": self.groups} if self.kin.paired else {}
        for layer in range(self.layers):
            for name, shape in shapes.items():
                new = f"model.layers.{layer}.{_BLOCK[name]}"
                yield f"blk.{layer}.{name}.weight", (f"{new}.weight", shape, paired.get(name, 0))
                if name in self.kin.biases:
                    yield f"blk.{layer}.{name}.bias", (f"{new}.bias", shape[:1], 0)


def _check_positions(header: Header, name: str) -> None:
    """Refuse positions that are stretched, which would need the same stretching here."""
    kind = header.value(f"{name}.rope.scaling.type", str, "none")
    if kind != "none":
        raise InputError(f"{header.path} stretches its positions ({kind!r}), which is not read: {ELSEWHERE}")
