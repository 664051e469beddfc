"""The reduced forward pass gives what the model itself gives, for every family and bucket."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lmkbc.masked import forward
from lmkbc.masked.backbone import load
from lmkbc.masked.forward import Forward, buckets

FAMILIES = ["bert", "roberta", "electra", "albert", "distilbert"]


def inputs(backbone: Any, masks: int = 1) -> list[list[int]]:
    generator = torch.Generator().manual_seed(1)
    made = []
    for length in (5, 9, 5, 12, 7, 9, 9):
        ids = torch.randint(5, len(backbone.tokenizer), (length,), generator=generator).tolist()
        for place in range(masks):
            ids[1 + 2 * place] = backbone.mask_id
        made.append(ids)
    return made


def plain(backbone: Any, ids: Sequence[int]) -> torch.Tensor:
    """The model itself, one input at a time: (m, v)."""
    with torch.inference_mode():
        logits = backbone.model(input_ids=torch.tensor([ids])).logits[0]
    return logits[[token == backbone.mask_id for token in ids]]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("masks", [1, 2])
def test_fp32_equals_the_model(save_model: Callable[..., Path], family: str, masks: int) -> None:
    backbone = load(save_model(family), offline=True)
    given_inputs = inputs(backbone, masks)
    seen = []
    for indices, logits in Forward(backbone).logits(given_inputs):
        for index, found in zip(indices, logits, strict=True):
            wanted = plain(backbone, given_inputs[index])
            torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
            assert found.topk(5).indices.tolist() == wanted.topk(5).indices.tolist()
            seen.append(index)
    assert sorted(seen) == list(range(len(given_inputs)))


@pytest.mark.parametrize("family", FAMILIES)
def test_bf16_stays_near(save_model: Callable[..., Path], family: str) -> None:
    exact, lower = (
        dict(_rows(Forward(one).logits(inputs(one))))
        for one in (load(save_model(family), offline=True, dtype=dtype) for dtype in ("float32", "bfloat16"))
    )
    assert lower.keys() == exact.keys()
    for index, row in lower.items():
        assert row.dtype == torch.float32
        assert (row - exact[index]).abs().max() < 0.15 * exact[index].std() + 0.15


@given(st.lists(st.tuples(st.integers(2, 9), st.integers(1, 2)), max_size=40), st.integers(1, 50))
def test_buckets_hold_each_input_once_among_its_like(shapes: list[tuple[int, int]], tokens: int) -> None:
    made = [[0] * masks + [1] * (length - masks) for length, masks in shapes]
    found = list(buckets(made, 0, tokens))
    assert sorted(index for bucket in found for index in bucket) == list(range(len(made)))
    for bucket in found:
        assert len({(len(made[index]), made[index].count(0)) for index in bucket}) == 1
        assert len(bucket) == 1 or len(bucket) * len(made[bucket[0]]) <= tokens


def _rows(batches: object) -> list[tuple[int, torch.Tensor]]:
    return [(index, row) for indices, logits in batches for index, row in zip(indices, logits, strict=True)]


@pytest.mark.parametrize("masks", [1, 2])
def test_logits_that_would_not_fit_come_in_parts(backbone: Any, masks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made = inputs(backbone, masks)
    whole = dict(_rows(Forward(backbone).logits(made)))
    monkeypatch.setattr(forward, "CELLS", 2 * len(backbone.tokenizer))
    parts = list(Forward(backbone).logits(made))
    assert {len(indices) * rows.shape[1] for indices, rows in parts} <= {1, 2}
    found = dict(_rows(parts))
    assert found.keys() == whole.keys()
    for index, row in found.items():
        torch.testing.assert_close(row, whole[index])
