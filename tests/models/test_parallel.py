"""Passes side by side: the results of each alone, in order, whatever the number of threads."""

from __future__ import annotations

import threading
from functools import partial

import pytest
import torch

from lmkbc.models import parallel
from lmkbc.models.parallel import side_by_side

LAYER = torch.nn.Linear(4, 4)


@pytest.fixture(params=[1, 2, 3])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(torch, "get_num_threads", lambda: request.param)
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)
    return int(request.param)


@pytest.mark.parametrize("jobs", [0, 1, 2, 7])
def test_results_come_in_the_order_of_their_jobs(threads: int, jobs: int) -> None:
    assert list(side_by_side(LAYER, [partial(int, number) for number in range(jobs)])) == list(range(jobs))


def test_as_many_passes_run_at_a_time_as_there_are_threads(threads: int) -> None:
    met = threading.Barrier(threads)
    list(side_by_side(LAYER, [partial(met.wait, 60)] * 2 * threads))  # would break if fewer ran at a time


def test_a_pass_that_fails_ends_the_others(threads: int) -> None:
    def fail() -> int:
        raise ValueError("no memory")

    found = side_by_side(LAYER, [partial(int, 1), fail, *[partial(int, 2)] * 50])
    assert next(found) == 1
    with pytest.raises(ValueError, match="no memory"):
        next(found)


@pytest.mark.parametrize(("size", "own"), [(10**9, 1), (20, 2)])
def test_a_large_model_has_several_threads_in_a_pass(size: int, own: int, monkeypatch: pytest.MonkeyPatch) -> None:
    given = list[int]()
    monkeypatch.setattr(parallel, "SMALL", size - 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    monkeypatch.setattr(torch, "set_num_threads", given.append)
    list(side_by_side(LAYER, [partial(int, 1)] * 2))
    assert set(given) == {own, 4}
    assert given[-1] == 4
