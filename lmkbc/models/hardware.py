"""Hardware of this machine: its device, its precision, and several passes at a time on a CPU.

The layers of a small model are too small for several threads. Two threads that synchronise in each layer are slower
than one as soon as the machine has other work. Two independent passes do not synchronise.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import torch

from lmkbc.errors import InputError

INSTRUCTIONS = "amx_bf16", "avx512_bf16"
"""CPU flags for bf16 products on x86-64. With AVX-512 alone, their emulation has a third of the speed of fp32."""
Result = TypeVar("Result")
MOST = 8
"""Maximum number of passes at a time; each needs its own memory."""
SMALL = 1_000_000_000
"""Up to this many parameters a pass has one thread, so that its numbers do not depend on the number of cores."""


class Capacity(NamedTuple):
    """Amounts that a device computes at a time; with more, a token takes no less time, or its mask too much memory.

    columns: tokens of prompts with options that are read in one row. piece: the same of prompts to answer.
    rows: answers that grow together. memory: bytes of their keys and values, prefixes not counted.
    saving: tokens that a shared prefix must save; to read few more costs less than a pass of their own. On a CPU a
    prefix with options may save none: later prompts continue it, and their numbers depend on no earlier call.
    saving_of_answers: the same of prompts to answer.
    """

    columns: int
    piece: int
    rows: int
    memory: int
    saving: int
    saving_of_answers: int


ON_CPU = Capacity(columns=160, piece=512, rows=192, memory=1 << 29, saving=0, saving_of_answers=32)
"""Few columns: progress shows earlier, and parallel passes end together."""
ON_ACCELERATOR = Capacity(columns=4096, piece=4096, rows=1024, memory=1 << 33, saving=2048, saving_of_answers=2048)
"""With fewer tokens at a time, starting the kernels of a pass takes longer than computing it."""


def capacity(device: torch.device) -> Capacity:
    """Return the capacity of a device: on an accelerator, at most a quarter of its free memory for answers."""
    if device.type != "cuda":
        return ON_CPU
    free, _ = torch.cuda.mem_get_info(device)
    return ON_ACCELERATOR._replace(memory=min(ON_ACCELERATOR.memory, free // 4))


def device_of(device: str | None) -> torch.device:
    """Return the device for weights: by default CUDA if available. Raise InputError for an unavailable device."""
    try:
        place = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        torch.ones(1, device=place).item()  # the meta device holds no numbers
    except Exception:  # each kind of device has errors of its own
        raise InputError(f"device is {device!r}, and no such device computes here: use cpu or cuda") from None
    return place


def multiplies_bf16(device: torch.device) -> bool:
    """Return whether the hardware multiplies bf16 natively; if not, bf16 is slower than fp32."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type != "cpu" or not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        return False
    if platform.machine().lower() not in {"x86_64", "amd64"}:
        return True  # on other CPUs the library checks this itself
    return any(map(torch.cpu.get_capabilities().get, INSTRUCTIONS))


def computes(model: torch.nn.Module) -> dict[str, str | int]:
    """Return how a model computes here: device, type of its weights, and on a CPU instructions and threads."""
    weight = next(model.parameters())
    how: dict[str, str | int] = {"device": weight.device.type, "dtype": precision(model)}
    if weight.device.type == "cpu":
        how |= {"instructions": torch.backends.cpu.get_cpu_capability(), "threads": torch.get_num_threads()}
    return how


def precision(model: torch.nn.Module) -> str:
    """Return the type of a model's weights: "int8" if it has linear layers in eight bits."""
    kinds = [weight.dtype for weight in model.parameters()]
    return str(torch.int8 if torch.int8 in kinds else kinds[0]).removeprefix("torch.")


def side_by_side(model: torch.nn.Module, jobs: Sequence[Callable[[], Result]]) -> Iterator[Result]:
    """Yield the results of a model's passes, in order. On other devices than a CPU, they run one after the other."""
    weights, threads = list(model.parameters()), torch.get_num_threads()
    if weights[0].device.type != "cpu":
        yield from (job() for job in jobs)
        return
    lanes = max(min(threads, MOST, len(jobs)), 1)
    threads_each = 1 if sum(weight.numel() for weight in weights) <= SMALL else threads // lanes
    with ThreadPoolExecutor(lanes, "forward", torch.set_num_threads, (threads_each,)) as pool:
        try:
            yield from pool.map(lambda job: job(), jobs)
        finally:
            torch.set_num_threads(threads)  # new threads start with this global number
