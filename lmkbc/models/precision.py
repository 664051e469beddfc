"""In what precision a model computes where the hardware has a choice."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch


def half_precision(device: torch.device) -> AbstractContextManager[object]:
    """Compute in bf16 where the hardware multiplies it natively, else in fp32. Weights stay in fp32."""
    if device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False):
        return torch.autocast("cuda", dtype=torch.bfloat16)
    if device.type == "cpu" and torch.ops.mkldnn._is_mkldnn_bf16_supported():
        return torch.autocast("cpu", dtype=torch.bfloat16)
    return nullcontext()
