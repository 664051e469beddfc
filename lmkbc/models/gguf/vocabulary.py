"""The tokenizer that a GGUF file describes: byte-level BPE (Sennrich et al. 2016; Radford et al. 2019).

How a text is split before its merges is named in the file, and the patterns are those that llama.cpp keeps for that
name. A name that is not known here is refused: another split gives other tokens, and a model that seems to know less.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from gguf.constants import MODEL_ARCH
from gguf.tensor_mapping import get_tensor_name_map
from transformers import AutoConfig, AutoModelForCausalLM

from lmkbc.errors import InputError
from lmkbc.models.gguf.header import ELSEWHERE, Header, Tensor

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

MOST = 1 << 24
"""Of any size that a model has."""
ARCHITECTURES = {"llama": "Llama", "qwen2": "Qwen2", "qwen3": "Qwen3"}
PAIRED = {"llama": {"attn_q": "num_attention_heads", "attn_k": "num_key_value_heads"}}
"""Architecture -> tensors whose rows llama.cpp keeps in the order of rotary pairs, and how many heads they have."""
Config = Mapping[str, Any]
Place = tuple[str, tuple[int, ...], int]


@dataclass(frozen=True, slots=True)
class Placed:
    """A tensor, its name in transformers, and of how many heads its rows are paired (0: of none)."""

    tensor: Tensor
    name: str
    heads: int = 0


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
    return {
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
    return [Placed(here[name], new, heads) for name, (new, _, heads) in wanted.items()]


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


_CONTROL, _OWN = 3, 4
"""Types of tokens that are never split: those that steer the model, and those that its makers added."""

_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
_QWEN2 = _LLAMA3.replace("{1,3}", "")
_DIGITS, _PLAIN = "digits", ""
SPLITS = {
    "gpt-2": _PLAIN,
    "phi-2": _PLAIN,
    "smollm": _DIGITS,
    "starcoder": _DIGITS,
    "refact": _DIGITS,
    "command-r": _DIGITS,
    "llama-bpe": _LLAMA3,
    "llama3": _LLAMA3,
    "llama-v3": _LLAMA3,
    "qwen2": _QWEN2,
    "deepseek-r1-qwen": _QWEN2,
}
"""What a file's `tokenizer.ggml.pre` means: GPT-2's own split, or it with digits set apart, or a pattern."""


def tokenizer(header: Header, window: int) -> PreTrainedTokenizerFast:
    """Return the tokenizer with its chat template. InputError for another kind, or one that is damaged."""
    from transformers import PreTrainedTokenizerFast

    kind, split = header.value("tokenizer.ggml.model", str), header.value("tokenizer.ggml.pre", str, "default")
    if kind != "gpt2" or split not in SPLITS:
        raise InputError(
            f"{header.path} has a tokenizer of the kind {kind!r}, {split!r}, and 'gpt2' is read with "
            f"{', '.join(SPLITS)}: {ELSEWHERE}"
        )
    tokens = _strings(header, "tokenizer.ggml.tokens")
    template = header.value("tokenizer.chat_template", str, "")
    places = {f"{end}_token": token_id(header, key) for end, key in _ENDS.items()}
    ends: dict[str, Any] = {name: tokens[place] for name, place in places.items() if place is not None}
    try:
        return PreTrainedTokenizerFast(
            tokenizer_object=_raw(header, tokens, split, ends.get("bos_token")),
            model_max_length=window,
            clean_up_tokenization_spaces=False,
            chat_template=template or None,
            **ends,
        )
    except InputError:
        raise
    except Exception as error:  # a damaged vocabulary fails in any way
        reason = " ".join(str(error).split())[:200].rstrip(". ")
        raise InputError(f"{header.path} has a tokenizer that cannot be used: {reason}; fetch it again") from None


_ENDS = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}


def _raw(header: Header, tokens: list[str], split: str, bos: str | None) -> Tokenizer:
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors

    pairs = [merge.split(" ") for merge in _strings(header, "tokenizer.ggml.merges")]
    if len(set(tokens)) < len(tokens) or any(len(pair) != 2 for pair in pairs):
        raise InputError(f"{header.path}: its vocabulary names a token twice, or merges no pairs; fetch it again")
    merges = [(left, right) for left, right in pairs]
    words = {token: place for place, token in enumerate(tokens)}
    raw = Tokenizer(models.BPE(vocab=words, merges=merges, ignore_merges=SPLITS[split] is _LLAMA3))
    pattern = SPLITS[split]
    steps: list[Any] = [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pattern in (_DIGITS, _PLAIN))]
    if pattern is _DIGITS:
        steps.insert(0, pre_tokenizers.Digits(individual_digits=True))
    elif pattern is not _PLAIN:
        steps.insert(0, pre_tokenizers.Split(Regex(pattern), behavior="isolated"))
    raw.pre_tokenizer = pre_tokenizers.Sequence(steps)
    raw.decoder = decoders.ByteLevel()
    if bos is not None and header.value("tokenizer.ggml.add_bos_token", bool, False):
        raw.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", pair=f"{bos} $A {bos} $B", special_tokens=[(bos, words[bos])]
        )
    kinds = header.metadata.get("tokenizer.ggml.token_type", ())
    whole = [(token, int(kind)) for token, kind in zip(tokens, kinds, strict=False) if kind in (_CONTROL, _OWN)]
    raw.add_special_tokens(
        [AddedToken(token, normalized=False, special=True) for token, kind in whole if kind == _CONTROL]
    )
    raw.add_tokens([AddedToken(token, normalized=False, special=False) for token, kind in whole if kind == _OWN])
    return raw


def _strings(header: Header, key: str) -> list[str]:
    strings: list[str] = header.value(key, list)
    return strings


def token_id(header: Header, name: str) -> int | None:
    """Return the place of a token with a task, such as "eos"; None where it has none. InputError for no place."""
    key = f"tokenizer.ggml.{name}_token_id"
    if key not in header.metadata:
        return None
    place, size = int(header.value(key, int)), len(_strings(header, "tokenizer.ggml.tokens"))
    if not 0 <= place < size:
        raise InputError(f"{header.path}: its field {key} is {place}, of {size} tokens; fetch it again")
    return place
