"""Linear layers in eight bits: a quarter of the memory of float32, and on a CPU products of whole numbers.

Each row of a weight has its own scale, each token of the input too. Products and sums of whole numbers are exact, so
they do not depend on the processor, nor on the way in which it multiplies. A weight has seven of the bits. Processors
without VNNI add two products of a weight and an input (0 to 255) in 16 bits: they would cut off larger sums.

There are three ways of multiplying, and each gives the same bytes. Which is fastest depends on the processor and the
libraries: a way may be emulated. Each is therefore timed when a model is loaded, and the fastest is taken.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, partial
from time import thread_time
from timeit import repeat
from typing import Any

import torch
from transformers.quantizers.auto import register_quantization_config, register_quantizer
from transformers.quantizers.base import HfQuantizer
from transformers.utils.quantization_config import QuantizationConfigMixin

from lmkbc.models.base import Quantise

METHOD: Quantise = "8bit"
"""Name of the quantisation, also in the configuration of a saved model."""
WEIGHT, INPUT = 63, 127
"""Largest values of a weight and of an input."""
EXACT, OUTPUTS = 2048, 256
"""Columns whose sum float32 adds exactly, in any order: 63 * 127 * 2048 < 2**24; and outputs at a time, in float32.

A processor's cache holds that many weights in float32.
"""

SMALL = 1 << 20
"""Numbers of which a scale, a bias or a norm has fewer, and an embedding more."""

Product = Callable[[torch.Tensor], torch.Tensor]
"""Function from inputs, (n, k), to sums of their products with a weight, (n, m). All are whole numbers in float32."""


def eight_bits(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a weight's whole numbers, and the scale of each row."""
    scale = weight.abs().amax(1).float().clamp(min=1e-20) / WEIGHT
    return (weight / scale[:, None]).round().to(torch.int8), scale


def packed(weight: torch.Tensor) -> Product:
    """Return the product by FBGEMM, which packs a weight in the order in which its kernels read it.

    It needs x86 with AVX2. An input has 8 bits without a sign there, with 128 for 0.
    """
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # a later PyTorch will lack it
        tensor = torch._make_per_tensor_quantized_tensor(weight.contiguous(), 1.0, 0)
    own, quantized = torch.ops.quantized.linear_prepack(tensor, None), torch.ops.quantized
    return lambda rows: quantized.linear_with_input_q_dq_qweight_dq_output_fp32(rows, 1.0, 128, own)


def in_float(weight: torch.Tensor) -> Product:
    """Return the product by float32, for EXACT columns at a time, whose sums are then added as whole numbers."""
    parts = [torch.split(part.contiguous(), OUTPUTS) for part in torch.split(weight, EXACT, 1)]

    def multiplied(rows: torch.Tensor) -> torch.Tensor:
        made = torch.zeros(len(rows), len(weight), dtype=torch.int32)
        for some, part in zip(torch.split(rows, EXACT, 1), parts, strict=True):
            for few, sums in zip(part, torch.split(made, OUTPUTS, 1), strict=True):
                sums.add_((some @ few.float().T).to(torch.int32))
        return made.float()

    return multiplied


WAYS: Mapping[str, Callable[[torch.Tensor], Product]] = {
    "packed": packed,
    "float": in_float,
    "whole": lambda weight: lambda rows: torch._int_mm(rows.to(torch.int8), weight.T).float(),
}
"""Ways of multiplying. "whole" is PyTorch's own function for whole numbers, which is emulated on many processors."""


@cache
def fastest() -> str:
    """Return the name of the way that takes least time here. It takes a fraction of a second, once per process.

    One token and several are multiplied. Time is that of the processor, which depends little on other programs.
    """
    weight, took = torch.full((512, EXACT), WEIGHT, dtype=torch.int8), dict[str, float]()
    for name, way in WAYS.items():
        with suppress(RuntimeError, AttributeError):  # PyTorch was built without it
            products = [partial(way(weight), torch.full((count, EXACT), float(INPUT))) for count in (1, 32)]
            took[name] = sum(min(repeat(product, number=1, repeat=4, timer=thread_time)) for product in products)
    return min(took, key=took.__getitem__)


class EightBits(torch.nn.Module):
    """A linear layer in eight bits."""

    def __init__(self, layer: torch.nn.Linear) -> None:
        super().__init__()
        weight, scale = (torch.nn.Parameter(part, requires_grad=False) for part in eight_bits(layer.weight.detach()))
        self.weight, self.scale, self.bias = weight, scale, layer.bias
        self.product: Product | None = None

    def forward(self, read: torch.Tensor) -> torch.Tensor:
        """Return the layer's output. An accelerator multiplies in the input's type."""
        if read.device.type != "cpu":
            return torch.nn.functional.linear(read, (self.weight * self.scale[:, None]).to(read.dtype), self.bias)
        rows = read.reshape(-1, read.shape[-1]).float()
        scale = rows.abs().amax(1, keepdim=True).clamp_(min=1e-20) / INPUT
        whole = (self.product or in_float(self.weight))((rows / scale).round_())
        made = whole.mul_(scale).mul_(self.scale).add_(0.0 if self.bias is None else self.bias)
        return made.to(read.dtype).reshape(*read.shape[:-1], len(self.scale))


def pack(model: Any) -> Any:
    """Replace a model's linear layers, and return it. A layer that shares its weight with the embeddings stays."""
    shared = model.get_output_embeddings() if model.config.get_text_config().tie_word_embeddings else None
    layers = [name for name, layer in model.named_modules() if type(layer) is torch.nn.Linear and layer is not shared]
    for name in layers:
        model.set_submodule(name, EightBits(model.get_submodule(name)))
    return model


def prepare(model: Any, way: str = "") -> Any:
    """Prepare a model's layers in eight bits for products on a CPU, and return it. way: its name; the fastest if "".

    A way has its own copy of a weight, whose memory is given back. Weights are parts of files in memory, which stay
    there as long as any of their parts is used. So small parts are copied.
    """
    layers = [one for one in model.modules() if isinstance(one, EightBits) and one.weight.device.type == "cpu"]
    for layer in layers:
        layer.product = WAYS[way or fastest()](layer.weight.data)
        layer.weight = torch.nn.Parameter(layer.weight.to("meta"), requires_grad=False)
    for part in (*model.parameters(), *model.buffers()) if layers else ():
        if part.device.type == "cpu" and part.numel() < SMALL:
            part.data = part.data.clone()
    return model


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
