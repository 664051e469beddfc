"""Several forward passes at a time on a CPU, each with its own threads.

The layers of a small model are too small to be shared: two threads that wait for each other in every one of them are
slower than one as soon as anything else runs on the machine. Two passes side by side need not wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Result = TypeVar("Result")
MOST = 8
"""Passes side by side at most: each needs memory of its own."""
SMALL = 1_000_000_000
"""Parameters of a model up to which a pass has one thread, so that its numbers do not depend on the number of cores."""


def side_by_side(model: torch.nn.Module, jobs: Sequence[Callable[[], Result]]) -> Iterator[Result]:
    """Yield what passes of a model return, in their order. One after the other where it is not on a CPU."""
    weights, threads = list(model.parameters()), torch.get_num_threads()
    if weights[0].device.type != "cpu":
        yield from (job() for job in jobs)
        return
    lanes = max(min(threads, MOST, len(jobs)), 1)
    own = 1 if sum(weight.numel() for weight in weights) <= SMALL else threads // lanes
    with ThreadPoolExecutor(lanes, "forward", torch.set_num_threads, (own,)) as pool:
        try:
            yield from pool.map(lambda job: job(), jobs)
        finally:
            torch.set_num_threads(threads)  # what new threads begin with is one number for all
