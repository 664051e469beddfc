"""Linear layers in 8 bits on a CPU: weights are quantised per output, activations per token and call."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor, nn

LARGEST = 127
TINY = 1e-12
"""Lower bound of a row's scale, against division by zero."""


@cache
def multiplies_exactly() -> bool:
    """Return whether products of bytes are summed exactly here.

    Without VNNI, oneDNN adds two products of bytes in 16 bits, which cuts off large sums.
    """
    largest = torch.full((64, 64), LARGEST, dtype=torch.int8)
    return bool((torch._int_mm(largest, largest) == 64 * LARGEST**2).all())


class Int8Linear(nn.Module):
    """Linear layer in integers: each weight row and each input row has its own scale (dynamic quantisation).

    If a processor does not multiply bytes exactly, the same integers are multiplied in fp32.
    """

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        weight = linear.weight.detach().float()
        self._scale = weight.abs().amax(dim=1).clamp(min=TINY) / LARGEST
        number = torch.int8 if multiplies_exactly() else torch.float32
        self._weight = (weight / self._scale[:, None]).round().to(number).T
        self._bias = torch.zeros(len(weight)) if linear.bias is None else linear.bias.detach().float()

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the product: (..., in) -> (..., out), both fp32."""
        rows = inputs.reshape(-1, inputs.shape[-1])
        scale = rows.abs().amax(dim=1, keepdim=True).clamp_(min=TINY) / LARGEST
        whole = (rows / scale).round_().to(self._weight.dtype)
        product = torch._int_mm(whole, self._weight) if whole.dtype == torch.int8 else whole @ self._weight
        outputs = torch.addcmul(self._bias, product.float().mul_(scale), self._scale)
        return outputs.view(*inputs.shape[:-1], -1)


def quantise(module: nn.Module) -> None:
    """Replace every linear layer below a module by its 8-bit form, in place."""
    for name, child in module.named_children():
        if isinstance(child, nn.Linear):
            setattr(module, name, Int8Linear(child))
        else:
            quantise(child)
