"""In what precision a model computes where the hardware has a choice."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch


def multiplies_bf16(device: torch.device) -> bool:
    """Whether the hardware multiplies bf16 natively; where it does not, that is slower than fp32."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return device.type == "cpu" and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def half_precision(device: torch.device) -> AbstractContextManager[object]:
    """Compute in bf16 where the hardware multiplies it natively, else in fp32. Weights stay in fp32."""
    return torch.autocast(device.type, dtype=torch.bfloat16) if multiplies_bf16(device) else nullcontext()
