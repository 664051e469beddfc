"""Operations of the bundled recipes on this CPU: how fast each is, beside the same in float32.

A line is an operation: its shape, and billions of operations (GFLOP/s) or bytes (GB/s) a second here and in float32.
Its time as a multiple of float32's follows. `taken` marks what runs here, and `slow` what runs here and takes more than
twice the time of float32. Time is that of the processor, of one thread, the best of a few, so other programs hardly
change it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import gguf
import numpy as np
import torch
from gguf.constants import GGMLQuantizationType
from torch.nn import functional

from eval.bench import parsed, parser_of
from lmkbc.models.eight_bits import WAYS, WEIGHT, fastest
from lmkbc.models.hardware import multiplies_bf16

SHAPES = (1536, 8960), (8960, 1536), (1536, 1536), (1536, 256)
"""Columns and outputs of the linear layers of Qwen2.5-Coder-1.5B."""
KINDS = "Q4_K", "Q6_K", "Q4_1", "Q8_0", "F16"
"""Quantisations of the GGUF files in packages, and others."""
CPU = torch.device("cpu")
SLOW = 2.0
"""Multiple of float32's time that no operation may exceed."""


class Operation(NamedTuple):
    """An operation, and the same in float32, which is None if it is float32 itself.

    size: billions of operations or bytes. is_taken: whether this machine computes so.
    """

    name: str
    shape: str
    size: float
    run: Callable[[], object]
    in_float: Callable[[], object]
    is_taken: bool
    unit: str = "GFLOP/s"


def main(argv: Sequence[str]) -> None:
    parser = parser_of(__doc__, data=False)
    parser.add_argument("--rows", type=int, nargs="*", default=[1, 16, 160], help="tokens at a time")
    parser.add_argument("--divided", type=int, default=1, help="divisor of all other sizes")
    parser.add_argument("--times", type=int, default=5, help="repetitions, of which the best counts")
    given = parsed(parser, argv, rows=[1, 3], divided=32, times=1)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        native = "bfloat16" if multiplies_bf16(CPU) else "float32"
        print(f"{torch.backends.cpu.get_cpu_capability()}; native: {native}; eight bits: {fastest()}")
        print(f"{'operation':32} {'shape':>18} {'here':>9} {'float32':>9}          {'time':>7}")
        for operation in operations(given):
            print(line(operation, given.times), flush=True)
    finally:
        torch.set_num_threads(threads)


def line(operation: Operation, times: int) -> str:
    """Return an operation's line."""
    own, other = took(operation.run, times), took(operation.in_float, times)
    ratio = own / other
    mark = ("slow" if ratio > SLOW else "taken") if operation.is_taken else ""
    rates = f"{operation.size / own:9.2f} {operation.size / other:9.2f} {operation.unit:8}"
    return f"{operation.name:32} {operation.shape:>18} {rates} {ratio:6.2f}x {mark}".rstrip()


def took(run: Callable[[], object], times: int) -> float:
    """Return the seconds of this thread that some work takes at best, after a first time."""

    def once() -> float:
        start = time.thread_time()
        run()
        return time.thread_time() - start

    once()
    return max(min(once() for _ in range(times)), 1e-9)


def operations(given: argparse.Namespace) -> Iterator[Operation]:
    """Yield the operations."""
    shapes = [(max(columns // given.divided, 2), max(outputs // given.divided, 2)) for columns, outputs in SHAPES]
    for rows in given.rows:
        for columns, outputs in shapes:
            yield from products(rows, columns, outputs)
        yield from attention(rows, max(1024 // given.divided, 2))
        yield from small(rows, *shapes[0])
    yield from conversions(max((1 << 22) // given.divided**2, 256))


def products(rows: int, columns: int, outputs: int) -> Iterator[Operation]:
    """Yield the products of rows with a layer's weight: in eight bits in each way, and in bfloat16."""
    size, shape = 2 * rows * columns * outputs / 1e9, f"{rows}x{columns}x{outputs}"
    whole = torch.randint(-WEIGHT, WEIGHT + 1, (outputs, columns), dtype=torch.int8)
    read = torch.randint(-127, 128, (rows, columns)).float()
    weight = whole.float()

    def plain() -> object:
        return functional.linear(read, weight)

    for name, way in WAYS.items():
        try:
            product = way(whole)
            product(read)
        except (RuntimeError, AttributeError):  # PyTorch was built without it
            continue
        yield Operation(f"linear, eight bits, {name}", shape, size, partial(product, read), plain, name == fastest())
    yield both("linear", shape, size, functional.linear, read, weight)


def both(
    name: str, shape: str, size: float, run: Callable[..., object], *given: torch.Tensor, unit: str = "GFLOP/s"
) -> Operation:
    """Return an operation in bfloat16 beside float32."""
    half = [tensor.bfloat16() if tensor.is_floating_point() else tensor for tensor in given]
    return Operation(
        f"{name}, bfloat16", shape, size, lambda: run(*half), lambda: run(*given), multiplies_bf16(CPU), unit
    )


def attention(rows: int, columns: int, heads: int = 12, size: int = 128) -> Iterator[Operation]:
    """Yield the attention of rows to columns, with a mask that is added to the scores."""
    query, keys, values = (torch.randn(1, heads, count, size) for count in (rows, columns, columns))
    mask = torch.zeros(1, 1, rows, columns).masked_fill_(torch.rand(rows, columns) < 0.5, -1e30)

    def attend(query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor) -> object:
        return functional.scaled_dot_product_attention(query, keys, values, attn_mask=mask)

    def by_hand(query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor) -> object:
        return ((query @ keys.mT) * size**-0.5 + mask).softmax(-1) @ values

    cost, shape = 4 * rows * columns * heads * size / 1e9, f"{rows}x{columns}x{heads}x{size}"
    tensors = query, keys, values, mask
    yield both("attention", shape, cost, attend, *tensors)
    yield Operation(
        "attention, masked", shape, cost, lambda: attend(*tensors), lambda: by_hand(*tensors), is_taken=True
    )


def small(rows: int, columns: int, outputs: int) -> Iterator[Operation]:
    """Yield operations on single numbers."""
    read, weight = torch.randn(rows, columns), torch.ones(columns)
    table, tokens = torch.randn(outputs, columns), torch.arange(rows) % outputs
    normalised: dict[str, tuple[Callable[..., object], Sequence[torch.Tensor]]] = {
        "RMS norm": (lambda read, weight: functional.rms_norm(read, (columns,), weight), (read, weight)),
        "layer norm": (lambda read, weight: functional.layer_norm(read, (columns,), weight), (read, weight)),
        "SiLU": (functional.silu, (read,)),
        "softmax": (lambda read: read.softmax(-1), (read,)),
        "embedding": (functional.embedding, (tokens, table)),
    }
    for name, (run, tensors) in normalised.items():
        yield both(name, f"{rows}x{columns}", 4 * rows * columns / 1e9, run, *tensors, unit="GB/s")


def conversions(count: int) -> Iterator[Operation]:
    """Yield the reading of a GGUF file's quantised numbers as float32; float32 itself is copied and hashed."""
    import hashlib

    numbers: Any = np.linspace(-1, 1, count, dtype=np.float32).reshape(-1, 256)

    def hashed() -> object:
        return hashlib.sha256(numbers.copy()).digest()

    for kind in KINDS:
        known = GGMLQuantizationType[kind]
        block, size = gguf.GGML_QUANT_SIZES[known]
        raw = np.zeros((count // 256, 256 // block * size), dtype=np.uint8)

        def read(raw: Any = raw, known: Any = known) -> object:
            return gguf.quants.dequantize(raw, known)

        yield Operation(f"GGUF, {kind}", f"{count}", 4 * count / 1e9, read, hashed, is_taken=True, unit="GB/s")
