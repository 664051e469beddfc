"""Precision of a model's computation on the given hardware."""

from __future__ import annotations

import platform
from contextlib import AbstractContextManager, nullcontext

import torch

INSTRUCTIONS = "amx_bf16", "avx512_bf16"
"""CPU flags for bf16 products on x86-64. With AVX-512 alone, their emulation has a third of the speed of fp32."""


def multiplies_bf16(device: torch.device) -> bool:
    """Return whether the hardware multiplies bf16 natively; if not, bf16 is slower than fp32."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type != "cpu" or not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        return False
    if platform.machine().lower() not in {"x86_64", "amd64"}:
        return True  # on other CPUs the library checks this itself
    has = torch.cpu.get_capabilities()
    return any(has.get(name) for name in INSTRUCTIONS)


def computes(model: torch.nn.Module) -> dict[str, str | int]:
    """Return how a model computes here: device, type of its weights, and on a CPU instructions and threads."""
    weight = next(model.parameters())
    how: dict[str, str | int] = {"device": weight.device.type, "dtype": str(weight.dtype).removeprefix("torch.")}
    if weight.device.type == "cpu":
        how |= {"instructions": torch.backends.cpu.get_cpu_capability(), "threads": torch.get_num_threads()}
    return how


def half_precision(device: torch.device) -> AbstractContextManager[object]:
    """Return a context that computes in bf16 if the hardware multiplies it natively, else in fp32.

    Weights stay in fp32.
    """
    return torch.autocast(device.type, dtype=torch.bfloat16) if multiplies_bf16(device) else nullcontext()
