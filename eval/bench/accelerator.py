"""A device's matrix rate, and what prompts and answers of a causal model reach of it.

The weights are random, in the shapes of real models, and in bfloat16 where the device multiplies it. Prefill scores an
option after prompts that share nothing: 2 operations per weight and token are counted, embeddings and attention are
not. Answers of --tokens tokens are greedy and sampled. Beside them stands transformers' own `generate` on --peer of
the prompts, padded to one length.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Sequence
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from eval.bench import parsed, parser_of, timed
from eval.bench.causal import word_tokenizer
from eval.bench.figures import Table
from lmkbc.local.decode import Decoding
from lmkbc.local.model import CausalModel
from lmkbc.models.hardware import device_of, multiplies_bf16

SIZES = (
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "vocab_size",
)
SHAPES = {
    "smollm2-135m": ("llama", (576, 1536, 30, 9, 3, 49152)),
    "qwen2.5-1.5b": ("qwen2", (1536, 8960, 28, 12, 2, 151936)),
    "tiny": ("llama", (32, 64, 2, 4, 2, 512)),
}
"""Name -> architecture and sizes, as in SIZES. Embeddings are tied."""
SIZE = 8192
"""Rows and columns of the matrices whose product measures the matrix rate."""


def main(argv: Sequence[str]) -> None:
    parser = parser_of(__doc__, *SHAPES, data=False)
    parser.set_defaults(rows=["smollm2-135m", "qwen2.5-1.5b"])
    parser.add_argument("--device", help="cuda where there is one, else cpu")
    parser.add_argument("--prompts", type=int, default=2048)
    parser.add_argument("--length", type=int, default=256, help="tokens of a prompt")
    parser.add_argument("--tokens", type=int, default=64, help="tokens of an answer")
    parser.add_argument("--peer", type=int, default=256, help="prompts that transformers answers, all at a time")
    parser.add_argument("--size", type=int, default=SIZE, help="rows and columns of the matrices of the matrix rate")
    few = {"rows": ["tiny"], "device": "cpu", "prompts": 4, "length": 8, "tokens": 2, "peer": 2, "size": 64}
    given = parsed(parser, argv, **few)
    device = device_of(given.device)
    dtype = torch.bfloat16 if multiplies_bf16(device) else torch.float32
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    rate = matrix_rate(device, dtype, given.size)
    print(f"{name}: {rate:.4g} TFLOP/s in products of {str(dtype).removeprefix('torch.')}, {given.size} x {given.size}")
    table = Table("accelerator", "tokens a second")
    for name in given.rows:
        table.add(name, speeds(*SHAPES[name], given, device, dtype, rate))


def speeds(
    kind: str, sizes: Sequence[int], given: argparse.Namespace, device: torch.device, dtype: torch.dtype, rate: float
) -> dict[str, str]:
    """Return the figures of a shape. rate: TFLOP a second."""
    causal = random_model(kind, sizes, device, dtype)
    texts = prompts(given.prompts, given.length, sizes[-1])

    def scored(some: Sequence[str]) -> object:
        return causal.log_probabilities(some, [[" w1"]] * len(some))

    def answered(temperature: float) -> object:
        return list(causal.complete(texts, Decoding(max_tokens=given.tokens, temperature=temperature)))

    scored(texts[:2])  # the first call of a process is slower
    prefill = given.prompts * given.length / took(device, lambda: scored(texts))
    weights = sum(weight.numel() for name, weight in causal.model.named_parameters() if "embed" not in name)
    answers = given.prompts * given.tokens
    peer = given.peer * given.tokens / took(device, lambda: generated(causal, texts[: given.peer], given.tokens))
    return {
        "prefill": f"{prefill:.0f}",
        "share of the matrix rate": f"{2 * weights * prefill / rate / 1e12:.1%}",
        "greedy": f"{answers / took(device, lambda: answered(0.0)):.0f}",
        "sampled": f"{answers / took(device, lambda: answered(1.0)):.0f}",
        "transformers, greedy": f"{peer:.0f}",
    }


def matrix_rate(device: torch.device, dtype: torch.dtype, size: int) -> float:
    """Return the best of ten products of two square matrices, in TFLOP a second."""
    one, other = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    best = min(took(device, lambda: one @ other) for _ in range(10))
    return 2 * size**3 / best / 1e12


def took(device: torch.device, work: Callable[[], object]) -> float:
    """Return the wall seconds of some work, its kernels included."""

    def whole() -> None:
        work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    return timed(whole).wall


def random_model(kind: str, sizes: Sequence[int], device: torch.device, dtype: torch.dtype) -> CausalModel:
    """Return a model of a shape with random weights, whose answers never end. A word is a token."""
    shape = dict(zip(SIZES, sizes, strict=True)) | {"tie_word_embeddings": True, "max_position_embeddings": 8192}
    config = AutoConfig.for_model(kind, **shape, bos_token_id=None, eos_token_id=None, pad_token_id=0)
    torch.manual_seed(0)
    with torch.device(device):
        made: Any = AutoModelForCausalLM.from_config(config, dtype=dtype)
    made.generation_config.eos_token_id = None
    return CausalModel(made.eval(), word_tokenizer(sizes[-1]))


def prompts(count: int, length: int, vocabulary: int) -> list[str]:
    """Return texts of random words, a token each."""
    draw = random.Random(0)
    return [" ".join(f"w{draw.randrange(vocabulary)}" for _ in range(length)) for _ in range(count)]


def generated(causal: CausalModel, texts: Sequence[str], tokens: int) -> None:
    read = torch.tensor(causal.encode(texts), device=causal.model.device)
    generate: Any = causal.model.generate
    generate(read, max_new_tokens=tokens, do_sample=False, pad_token_id=0, attention_mask=torch.ones_like(read))
