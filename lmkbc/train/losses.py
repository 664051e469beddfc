"""Losses over the columns of a masked language model: likelihood and ranking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn

Row = TypeVar("Row")


Golds = Sequence[Sequence[int]]
"""For each row, the right columns."""


Loss = Callable[[Tensor, Golds], Tensor]


RIVALS, STEEPNESS = 50, 5.0
"""Settings of the ranking loss: number of best columns to compare with, and sigma (Biswas et al. 2023)."""


def mean(loss: Callable[[Sequence[Row]], Tensor], rows: Sequence[Row], batch: int) -> float:
    """Return the mean loss over rows, in batches, without gradients."""
    with torch.inference_mode():
        parts = (rows[start : start + batch] for start in range(0, len(rows), batch))
        return sum(float(loss(part)) * len(part) for part in parts) / len(rows)


def soft_loss(logits: Tensor, golds: Golds) -> Tensor:
    """Return the cross-entropy of logits (b, n) with the uniform distribution over each row's gold columns."""
    rows = [row for row, gold in enumerate(golds) for _ in gold]
    columns = [column for gold in golds for column in gold]
    weights = torch.tensor([1 / len(gold) for gold in golds for _ in gold], device=logits.device)
    return -(torch.log_softmax(logits.float(), -1)[rows, columns] * weights).sum() / len(golds)


def rank_loss(logits: Tensor, golds: Golds) -> Tensor:
    """Return a ranking loss of logits (b, n): softplus of sigma times the gap of each wrong and right column.

    The weight of a pair is |1/rank - 1/rank|, so that the top counts most. In Biswas et al. 2023, scores are the
    exponential of distances; here they are the softmax.
    """
    shares = logits.float().softmax(-1)
    ranks = (shares.argsort(-1, descending=True).argsort(-1) + 1).float()
    total = shares.new_zeros(())
    for share, rank, gold in zip(shares, ranks, golds, strict=True):
        wrong = rank <= RIVALS
        wrong[list(gold)] = False
        own = list(gold)
        weights = (1 / rank[own, None] - 1 / rank[None, wrong]).abs()
        gaps = share[own, None] - share[None, wrong]
        total = total + (weights * nn.functional.softplus(-STEEPNESS * gaps)).sum() / len(own)
    return total / len(golds)


LOSSES: dict[str, Loss] = {"likelihood": soft_loss, "ranking": rank_loss}
