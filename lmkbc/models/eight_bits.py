"""Linear layers in eight bits: a quarter of the memory of float32, and on a CPU products of whole numbers.

Each row of a weight has its own scale, each token of the input too. Products and sums of whole numbers are exact, so
they do not depend on the processor, nor on the way in which it multiplies. A weight has seven of the bits. Processors
without VNNI add two products of a weight and an input (0 to 255) in 16 bits: they would cut off larger sums.

There are three ways of multiplying, and each gives the same bytes. Which is fastest depends on the processor and the
libraries: a way may be emulated. Each is therefore timed when a model is loaded, and the fastest is taken.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import torch
from transformers.quantizers.auto import register_quantization_config, register_quantizer
from transformers.quantizers.base import HfQuantizer
from transformers.utils.quantization_config import QuantizationConfigMixin

from lmkbc.models.reference import Quantise
from lmkbc.progress import Report, silent, tracked

METHOD: Quantise = "8bit"
"""Name of the quantisation, also in the configuration of a saved model."""
WEIGHT, INPUT = 63, 127
"""Largest values of a weight and of an input."""
EXACT = 2048
"""Columns whose sum float32 adds exactly, in any order: 63 * 127 * 2048 < 2**24."""
AT_ONCE = 1 << 19
"""Weights that are in float32 at a time: 2 MiB, which a processor's cache holds."""
TRIED = (1, 32), 2048, 512
"""Rows of an input, its columns and its outputs in the products that are timed: of one token, and of several."""

Product = Callable[[torch.Tensor], torch.Tensor]
"""Function from inputs, (n, k), to sums of their products with a weight, (n, m). All are whole numbers in float32."""


def eight_bits(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a weight's whole numbers, and the scale of each row."""
    scale = weight.abs().amax(1).float().clamp(min=1e-20) / WEIGHT
    return (weight / scale[:, None]).round().to(torch.int8), scale


def packed(weight: torch.Tensor) -> Product:
    """Return the product by FBGEMM, which packs a weight in the order in which its kernels read it.

    It needs AVX2 at least. Raise RuntimeError or AttributeError if PyTorch has no FBGEMM here. An input has 8 bits
    without a sign there, with 128 for 0.
    """
    engine = torch.backends.quantized.engine
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # a later PyTorch will lack it
        torch.backends.quantized.engine = "fbgemm"
        try:
            whole = torch._make_per_tensor_quantized_tensor(weight.contiguous(), 1.0, 0)
            own = torch.ops.quantized.linear_prepack(whole, None)
        finally:
            torch.backends.quantized.engine = engine
    multiply = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32
    return lambda rows: multiply(rows, 1.0, 128, own)


def in_float(weight: torch.Tensor) -> Product:
    """Return the product by float32, for EXACT columns at a time, whose sums are then added as whole numbers."""
    parts = [part.contiguous() for part in weight.split(EXACT, 1)]

    def multiplied(rows: torch.Tensor) -> torch.Tensor:
        sums = (_in_float(some, part) for some, part in zip(rows.split(EXACT, 1), parts, strict=True))
        if len(parts) == 1:
            return next(sums)
        whole = next(sums).to(torch.int32)
        for part in sums:
            whole += part.to(torch.int32)
        return whole.float()

    return multiplied


def _in_float(rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return the product with a weight, of which few rows are in float32 at a time."""
    made = rows.new_empty(len(rows), len(weight))
    step = max(AT_ONCE // weight.shape[1], 1)
    room = rows.new_empty(min(step, len(weight)), weight.shape[1])
    for few, some in zip(weight.split(step), made.split(step, 1), strict=True):
        torch.mm(rows, room[: len(few)].copy_(few).T, out=some)
    return made


def in_whole(weight: torch.Tensor) -> Product:
    """Return the product by PyTorch's own function for whole numbers: fast with VNNI, emulated without."""
    return lambda rows: torch._int_mm(rows.to(torch.int8), weight.T).float()


WAYS: Mapping[str, Callable[[torch.Tensor], Product]] = {"packed": packed, "float": in_float, "whole": in_whole}
"""Ways of multiplying. The first of several equally fast ones is taken."""


@cache
def fastest() -> str:
    """Return the name of the way that takes least time here. It takes a fraction of a second, once per process.

    Time is that of the processor, which depends little on other programs.
    """
    counts, columns, outputs = TRIED
    weight = torch.full((outputs, columns), WEIGHT, dtype=torch.int8)
    inputs = [torch.full((count, columns), float(INPUT)) for count in counts]
    products = dict[str, Product]()
    for name, way in WAYS.items():
        try:
            product = way(weight)
            _ = [product(rows) for rows in inputs]  # the first call takes longer
        except (RuntimeError, AttributeError, NotImplementedError):  # PyTorch was built without it
            continue
        products[name] = product

    def took(product: Product, rows: torch.Tensor) -> float:
        start = time.thread_time()
        product(rows)
        return time.thread_time() - start

    def cost(product: Product) -> float:
        return sum(min(took(product, rows) for _ in range(3)) for rows in inputs)

    return min(products, key=lambda name: cost(products[name]))


class EightBits(torch.nn.Module):
    """A linear layer in eight bits."""

    def __init__(self, layer: torch.nn.Linear) -> None:
        super().__init__()
        weight, scale = (torch.nn.Parameter(part, requires_grad=False) for part in eight_bits(layer.weight.detach()))
        self.weight, self.scale, self.bias = weight, scale, layer.bias
        self._product: Product | None = None

    def prepare(self, way: str) -> None:
        """Multiply in this way from now on. The way has its own copy of the weight, whose memory is given back."""
        self._product = WAYS[way](self.weight.data)
        self.weight = torch.nn.Parameter(self.weight.to("meta"), requires_grad=False)

    def forward(self, read: torch.Tensor) -> torch.Tensor:
        """Return the layer's output. An accelerator multiplies in the input's type."""
        if read.device.type != "cpu":
            return torch.nn.functional.linear(read, (self.weight * self.scale[:, None]).to(read.dtype), self.bias)
        rows = read.reshape(-1, read.shape[-1]).float()
        scale = rows.abs().amax(1, keepdim=True).clamp_(min=1e-20) / INPUT
        product = self._product or in_float(self.weight)
        whole = product((rows / scale).round_())
        made = whole.mul_(scale).mul_(self.scale).add_(0.0 if self.bias is None else self.bias)
        return made.to(read.dtype).reshape(*read.shape[:-1], len(self.scale))


def pack(model: Any) -> Any:
    """Replace a model's linear layers, and return it. A layer that shares its weight with the embeddings stays."""
    shared = model.get_output_embeddings() if model.config.get_text_config().tie_word_embeddings else None
    layers = [name for name, layer in model.named_modules() if type(layer) is torch.nn.Linear and layer is not shared]
    for name in layers:
        model.set_submodule(name, EightBits(model.get_submodule(name)))
    return model


def prepare(model: torch.nn.Module, way: str | None = None, report: Report = silent) -> None:
    """Prepare a model's layers in eight bits for products on a CPU; do nothing if there are none, or it is elsewhere.

    way: name of the way; None for the fastest. report: callback for progress.
    """
    layers = [layer for layer in model.modules() if isinstance(layer, EightBits) and layer.weight.device.type == "cpu"]
    if layers:
        way = way or fastest()
        for layer in tracked(layers, "pack weights (layers)", report):
            layer.prepare(way)


register_quantization_config(METHOD)(QuantizationConfigMixin)


@register_quantizer(METHOD)
class _Quantizer(HfQuantizer):
    """Reads a saved model whose linear layers are in eight bits."""

    is_trainable = False

    def is_serializable(self) -> bool:
        """Return False: no save is offered."""
        return False

    def _process_model_before_weight_loading(self, model: Any, **_: object) -> None:
        pack(model)
