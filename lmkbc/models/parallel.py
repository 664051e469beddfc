"""Several forward passes at a time on a CPU, each with its own threads.

The layers of a small model are too small for several threads. Two threads that synchronise in each layer are slower
than one as soon as the machine has other work. Two independent passes do not synchronise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Result = TypeVar("Result")
MOST = 8
"""Maximum number of passes at a time; each needs its own memory."""
SMALL = 1_000_000_000
"""Up to this many parameters a pass has one thread, so that its numbers do not depend on the number of cores."""


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
