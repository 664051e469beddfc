"""Share of an accelerator's rate that probing uses: a masked LM of BERT-large's size on the prompts of 2023 val.

    python eval/bench/accelerator.py [--data DIR] [--device cuda] [--precision bf16] [--repeat 20] [--layers 24]

Prompts per second, from token ids to the ten best words. Their arithmetic is also shown as a share of the device's
rate. That rate is measured in the same run, with plain matrix products of the same number format. The weights are
random. Any device of torch can be used. A CPU shows that the code works, with few --layers in seconds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from masked import prompts, random_bert
from transformers import BertConfig

from lmkbc.cli.terminal import error_status
from lmkbc.models.masked.clozes import Clozes
from lmkbc.models.masked.forward import Forward
from lmkbc.workspace import Workspace

TOP = 10
FORMATS = {"bf16": torch.bfloat16, "fp32": torch.float32}
SIZES = {"cuda": 8192, "cpu": 1024}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="directory of the official splits (default: $LMKBC_DATA)")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--precision", choices=FORMATS, default="bf16")
    parser.add_argument("--repeat", type=int, default=20, help="how many times each prompt is asked")
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=3, help="the fastest of so many counts")
    given = parser.parse_args(argv)
    config = BertConfig(
        hidden_size=1024, num_hidden_layers=given.layers, num_attention_heads=16, intermediate_size=4096
    )
    backbone = random_bert(config, given.device)
    rows = prompts(Workspace(data=given.data))
    filled = [ids for template, subject in rows for ids in Clozes(backbone).fill(template, [subject])]
    inputs = filled * given.repeat
    model: Any = backbone.model
    model.to(FORMATS[given.precision])
    forward = Forward(backbone)

    def ask() -> None:
        found = [logits[:, 0].topk(TOP).indices for _, logits in forward.logits(inputs)]
        torch.cat(found).cpu()

    size = SIZES.get(torch.device(given.device).type, 4096)
    square = torch.randn(size, size, device=given.device, dtype=FORMATS[given.precision])

    def multiply() -> None:
        (square @ square)[0, 0].item()

    seconds = fastest(ask, given.rounds)
    product = fastest(multiply, 10 * given.rounds)
    work, rate = sum(operations(len(ids), config) for ids in inputs) / seconds, 2 * size**3 / product
    name = torch.cuda.get_device_name() if given.device.startswith("cuda") else given.device
    print(
        f"{len(inputs):,} prompts, {sum(map(len, inputs)) / len(inputs):.1f} tokens each, {given.layers} layers, {name}"
    )
    print(f"{given.precision}: {len(inputs) / seconds:,.0f} prompts/s, {work / 1e12:.2f} TFLOP/s")
    print(f"matrix products of {size} x {size}: {rate / 1e12:.2f} TFLOP/s; probing reaches {work / rate:.1%} of it")


def fastest(run: Callable[[], object], rounds: int) -> float:
    """Return the seconds of the fastest of several runs, after one that is not counted."""
    run()
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def operations(length: int, config: BertConfig) -> float:
    """Return the multiplications and additions for one prompt with one mask.

    The last layer computes keys and values of all tokens. The rest of it, and the head, are computed at the mask only.
    """
    h, inner = config.hidden_size, config.intermediate_size
    token = 8 * h * h + 4 * h * inner + 4 * h * length
    last = 4 * h * h * length + 4 * h * h + 4 * h * inner + 4 * h * length
    return (config.num_hidden_layers - 1) * length * token + last + 2 * h * h + 2 * h * config.vocab_size


if __name__ == "__main__":
    with error_status():
        main()
