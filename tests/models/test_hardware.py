"""Hardware is asked for what it has; passes side by side give the results of each alone, in order."""

import platform
import threading
from functools import partial

import pytest
import torch

from lmkbc.models import hardware
from lmkbc.models.hardware import multiplies_bf16, side_by_side

CPU = torch.device("cpu")
LAYER = torch.nn.Linear(4, 4)


@pytest.mark.parametrize(
    ("machine", "has", "library", "native"),
    [
        ("x86_64", {"avx512_f": True, "avx512_bf16": False, "amx_bf16": False}, True, False),  # emulated, and slower
        ("x86_64", {"avx512_f": True, "avx512_bf16": True}, True, True),
        ("AMD64", {"amx_bf16": True}, True, True),
        ("x86_64", {"amx_bf16": True}, False, False),  # the library was told to leave it
        ("x86_64", {"avx2": True}, False, False),
        ("aarch64", {}, True, True),
        ("aarch64", {}, False, False),
    ],
)
def test_bf16_is_native_where_there_are_instructions_for_it(
    machine: str, has: dict[str, bool], library: bool, native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: has)
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: library, raising=False)
    assert multiplies_bf16(CPU) is native


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
    monkeypatch.setattr(hardware, "SMALL", size - 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    monkeypatch.setattr(torch, "set_num_threads", given.append)
    list(side_by_side(LAYER, [partial(int, 1)] * 2))
    assert set(given) == {own, 4}
    assert given[-1] == 4
