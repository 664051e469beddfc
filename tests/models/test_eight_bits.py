"""Layers in eight bits: each way of multiplying gives the same bytes, and the eight_bits.fastest here is taken."""

import pytest
import torch

from lmkbc.models import eight_bits
from lmkbc.models.eight_bits import EightBits

WEIGHT, INPUT = 63, 127
"""The largest numbers of a layer and of what it reads."""


@pytest.fixture(params=list(eight_bits.WAYS))
def way(request: pytest.FixtureRequest) -> str:
    try:
        eight_bits.WAYS[request.param](torch.ones(1, 1, dtype=torch.int8))(torch.ones(1, 1))
    except (RuntimeError, AttributeError):
        pytest.skip("PyTorch has no such product on this machine")
    return str(request.param)


@pytest.mark.parametrize("rows", [(0,), (1,), (2, 8), (17,), (3, 1, 11)], ids=str)
@pytest.mark.parametrize(("columns", "outputs"), [(1, 1), (5, 3), (1536, 40), (2048, 7), (2049, 16), (8960, 33)])
def test_each_way_gives_the_same_bytes(way: str, rows: tuple[int, ...], columns: int, outputs: int) -> None:
    torch.manual_seed(columns)
    for bias, dtype in ((True, torch.float32), (False, torch.bfloat16)):
        layer = EightBits(torch.nn.Linear(columns, outputs, bias=bias).requires_grad_(False))
        read = torch.randn(*rows, 2 * columns).to(dtype)[..., ::2]  # not contiguous
        scale = read.float().abs().amax(-1, keepdim=True).clamp(min=1e-20) / INPUT
        sums = ((read.float() / scale).round().double() @ layer.weight.double().T).float()
        expected = (sums * scale * layer.scale + (0.0 if layer.bias is None else layer.bias)).to(dtype)
        assert torch.equal(layer(read), expected)  # before it is prepared
        eight_bits.prepare(layer, way)
        assert torch.equal(layer(read), expected)


@pytest.mark.parametrize("columns", [2048, 2049, 8960, 40960])
def test_the_largest_sums_are_exact(way: str, columns: int) -> None:
    weight = torch.full((4, columns), WEIGHT, dtype=torch.int8)
    weight[1] *= -1
    weight[2, ::2] *= -1
    weight[3, -1] -= 1
    rows = torch.full((3, columns), float(INPUT))
    rows[1] *= -1
    rows[2, 0] -= 1
    assert torch.equal(eight_bits.WAYS[way](weight)(rows), (rows.double() @ weight.double().T).float())


def test_a_prepared_layer_keeps_one_copy_of_its_weight(way: str) -> None:
    layer = EightBits(torch.nn.Linear(6, 4))
    eight_bits.prepare(layer, way)
    assert (layer.weight.is_meta, layer.weight.dtype, layer.weight.numel()) == (True, torch.int8, 24)


def test_ways_that_are_absent_or_slow_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(weight: torch.Tensor) -> eight_bits.Product:
        return lambda rows: sum(rows @ weight.float().T for _ in range(20)) / torch.tensor(20.0)

    def absent(weight: torch.Tensor) -> eight_bits.Product:
        raise RuntimeError("PyTorch was built without it")

    monkeypatch.setattr(eight_bits, "WAYS", {"absent": absent, "slow": slow, "float": eight_bits.WAYS["float"]})
    assert eight_bits.fastest.__wrapped__() == "float"
    monkeypatch.setattr(eight_bits, "WAYS", {"absent": absent, "slow": slow})
    assert eight_bits.fastest.__wrapped__() == "slow"
