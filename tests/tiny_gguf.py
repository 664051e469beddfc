"""Tiny random models as GGUF files, written as llama.cpp's converter writes them."""

import string
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import gguf
import tiny_causal
import torch
from gguf.constants import GGMLQuantizationType
from gguf.quants import quantize
from transformers import Gemma3TextConfig

TEMPLATE = "{% for message in messages %}[{{ message['role'] }}] {{ message['content'] }}\n{% endfor %}[assistant] "
TOKENS = [*("QQ" if byte == "ÿ" else byte for byte in tiny_causal.BYTES), "<end>"]
"""One token per byte, but for one that UTF-8 has no use for: a file without any merges cannot be written."""
NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}
GEMMA_NAMES = NAMES | {
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
PIECES = ["<pad>", "<eos>", "<bos>", "<unk>", "  ", "   ", "\n", *(f"<0x{byte:02X}>" for byte in range(256)), "▁"]
PIECES += [*string.ascii_letters, *string.digits, "▁P", "er", "▁Per", "ru", "▁Peru", "12", "ão", "ab", "bab", "▁a"]
"""Tokens of a tiny Gemma, as SentencePiece has them; blanks alone are blanks in the file."""


def write(
    path: Path,
    model: Any = None,
    *,
    architecture: str = "llama",
    kind: str = "F32",
    fields: Mapping[str, Any] | None = None,
    without: Collection[str] = (),
) -> Path:
    """A model and the byte tokenizer, or Gemma's pieces. kind: how matrices are quantised.

    fields: put beside or over the usual ones. without: fields and tensors that are left out.
    """
    model = model or (gemma() if architecture == "gemma3" else tiny_causal.model("llama"))
    config = model.config
    head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    writer = gguf.GGUFWriter(path, architecture)
    rope = config.rope_parameters.get("full_attention", config.rope_parameters)
    usual: dict[str, Any] = {
        f"{architecture}.context_length": config.max_position_embeddings,
        f"{architecture}.embedding_length": config.hidden_size,
        f"{architecture}.block_count": config.num_hidden_layers,
        f"{architecture}.feed_forward_length": config.intermediate_size,
        f"{architecture}.attention.head_count": config.num_attention_heads,
        f"{architecture}.attention.head_count_kv": config.num_key_value_heads,
        f"{architecture}.attention.key_length": head,
        f"{architecture}.attention.layer_norm_rms_epsilon": config.rms_norm_eps,
        f"{architecture}.rope.freq_base": rope["rope_theta"],
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": TOKENS,
        "tokenizer.ggml.token_type": [1] * tiny_causal.EOS + [3],
        "tokenizer.ggml.merges": ["Q Q"],
        "tokenizer.ggml.eos_token_id": tiny_causal.EOS,
        "tokenizer.ggml.padding_token_id": tiny_causal.EOS,
        "tokenizer.chat_template": TEMPLATE,
    }
    if architecture == "gemma3":
        usual |= _gemma_fields(config)
        without = {*without, "tokenizer.ggml.merges"}
    names = GEMMA_NAMES if architecture == "gemma3" else NAMES
    for key, value in (usual | dict(fields or {})).items():
        if key not in without and key != "general.architecture":
            _put(writer, key, value)
    for name, value in model.state_dict().items():
        called, _, part = name.rpartition(".")
        layer = called.split(".")[2] if "layers" in called else ""
        short = f"blk.{layer}." * bool(layer) + names[called.removeprefix(f"model.layers.{layer}.")]
        if f"{short}.{part}" in without or (short == "output" and config.tie_word_embeddings):
            continue
        array = value.detach().numpy()
        if architecture == "llama" and short.endswith(("attn_q", "attn_k")):
            array = array.reshape(-1, 2, head // 2, array.shape[1]).swapaxes(1, 2).reshape(array.shape)
        array = array + 1 if architecture == "gemma3" and short.endswith("norm") else array
        raw = None if array.ndim == 1 or kind == "F32" else GGMLQuantizationType[kind]
        writer.add_tensor(f"{short}.{part}", array if raw is None else quantize(array, raw), raw_dtype=raw)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def gemma() -> Any:
    """A random model of seven layers, of which the sixth sees all, and the others eight tokens."""
    config = Gemma3TextConfig(
        vocab_size=len(PIECES),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=7,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
        query_pre_attn_scalar=8,
        sliding_window=8,
        max_position_embeddings=512,
        initializer_range=0.3,
    )
    model = tiny_causal.model("", config=config)
    for name, value in model.named_parameters():
        if name.endswith("norm.weight"):
            torch.nn.init.normal_(value, std=0.3)
    return model


def _gemma_fields(config: Any) -> dict[str, Any]:
    specials = {"padding": 0, "eos": 1, "bos": 2, "unknown": 3}
    return {
        "gemma3.attention.value_length": config.head_dim,
        "gemma3.attention.sliding_window": config.sliding_window,
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.tokens": PIECES,
        "tokenizer.ggml.scores": [-float(place) for place in range(len(PIECES))],
        "tokenizer.ggml.token_type": [3] * 4 + [4] * 3 + [6] * 256 + [1] * (len(PIECES) - 263),
        **{f"tokenizer.ggml.{name}_token_id": place for name, place in specials.items()},
    }


def _put(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    if isinstance(value, list):
        kinds = {str: gguf.GGUFValueType.STRING, float: gguf.GGUFValueType.FLOAT32}
        kind = kinds.get(type(value[0]), gguf.GGUFValueType.INT32)
        writer.add_key_value(key, value, gguf.GGUFValueType.ARRAY, sub_type=kind)
    elif isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    else:
        writer.add_string(key, value)
