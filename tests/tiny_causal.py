"""Tiny random causal models with a byte tokenizer, made on the spot."""

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM, Gemma3TextConfig, GPT2Config, LlamaConfig, PreTrainedTokenizerFast

BYTES = sorted(pre_tokenizers.ByteLevel.alphabet())
EOS = len(BYTES)
SIZE = EOS + 1


def tokenizer() -> PreTrainedTokenizerFast:
    """One token per byte, and an end token."""
    vocabulary = {byte: index for index, byte in enumerate(BYTES)} | {"<end>": EOS}
    raw = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="<end>", pad_token="<end>")


def model(kind: str, seed: int = 0, **changes: Any) -> Any:
    """A random model in float32: "gpt2", "llama" (grouped keys, rotary positions) or any other type of transformers.

    "gemma3": two of three layers see a window of eight tokens.

    Weights are drawn wide, so that likeliest tokens are clear.
    """
    torch.manual_seed(seed)
    if kind == "gpt2":
        config: Any = GPT2Config(
            vocab_size=SIZE, n_positions=512, n_embd=32, n_layer=2, n_head=4, initializer_range=0.3, **changes
        )
    elif kind == "llama":
        config = LlamaConfig(
            vocab_size=SIZE,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=512,
            initializer_range=0.3,
            **changes,
        )
    elif kind == "gemma3":
        config = Gemma3TextConfig(
            vocab_size=SIZE,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=3,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=8,
            query_pre_attn_scalar=8,
            sliding_window=8,
            layer_types=["sliding_attention", "full_attention", "sliding_attention"],
            max_position_embeddings=512,
            initializer_range=0.3,
            tie_word_embeddings=False,
            **changes,
        )
    else:
        config = changes["config"]
    for ends in ("bos_token_id", "eos_token_id", "pad_token_id"):
        setattr(config, ends, EOS)
    return AutoModelForCausalLM.from_config(config).eval()


def save(folder: Path, kind: str = "llama", seed: int = 0, **changes: Any) -> Path:
    """Write a model and its tokenizer, as a user has them."""
    model(kind, seed, **changes).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder
