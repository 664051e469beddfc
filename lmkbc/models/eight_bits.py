"""Linear layers in eight bits: a quarter of the memory of float32, and on a CPU products of whole numbers.

Each row of a weight has its own scale, each token of the input too. Products and sums of whole numbers are exact, so
they do not depend on the processor. A weight has seven of the bits. Processors without VNNI add two products of a
weight and an input (0 to 255) in 16 bits: they would cut off larger sums.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers.quantizers.auto import register_quantization_config, register_quantizer
from transformers.quantizers.base import HfQuantizer
from transformers.utils.quantization_config import QuantizationConfigMixin

from lmkbc.models.reference import Quantise

METHOD: Quantise = "8bit"
"""Name of the quantisation, also in the configuration of a saved model."""
WEIGHT, INPUT = 63, 127
"""Largest values of a weight and of an input."""


def eight_bits(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a weight's whole numbers, and the scale of each row."""
    scale = weight.abs().amax(1).float().clamp(min=1e-20) / WEIGHT
    return (weight / scale[:, None]).round().to(torch.int8), scale


class EightBits(torch.nn.Module):
    """A linear layer in eight bits."""

    def __init__(self, layer: torch.nn.Linear) -> None:
        super().__init__()
        weight, scale = (torch.nn.Parameter(part, requires_grad=False) for part in eight_bits(layer.weight.detach()))
        self.weight, self.scale, self.bias = weight, scale, layer.bias

    def forward(self, read: torch.Tensor) -> torch.Tensor:
        """Return the layer's output. An accelerator multiplies in the input's type."""
        if read.device.type != "cpu":
            return torch.nn.functional.linear(read, (self.weight * self.scale[:, None]).to(read.dtype), self.bias)
        rows = read.reshape(-1, read.shape[-1]).float()
        scale = rows.abs().amax(1, keepdim=True).clamp_(min=1e-20) / INPUT
        whole = torch._int_mm((rows / scale).round_().to(torch.int8), self.weight.T)
        made = whole.float().mul_(scale).mul_(self.scale).add_(0.0 if self.bias is None else self.bias)
        return made.to(read.dtype).reshape(*read.shape[:-1], -1)


def pack(model: Any) -> Any:
    """Replace a model's linear layers, and return it. A layer that shares its weight with the embeddings stays."""
    shared = model.get_output_embeddings() if model.config.get_text_config().tie_word_embeddings else None
    layers = [name for name, layer in model.named_modules() if type(layer) is torch.nn.Linear and layer is not shared]
    for name in layers:
        model.set_submodule(name, EightBits(model.get_submodule(name)))
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
