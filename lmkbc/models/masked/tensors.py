"""Tensors of a masked model: token ids of clozes, batches of inputs, logits at masks, word vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from lmkbc.models.masked.backbone import Backbone
from lmkbc.models.masked.clozes import Clozes, subject_of
from lmkbc.types import grouped

BATCH = 256
"""Rows per batch outside training."""


def masked(backbone: Backbone, clozes: Sequence[str], subjects: Sequence[str]) -> list[list[int]]:
    """Return the token ids of n clozes with one mask each, special tokens included, as in training."""
    return Clozes(backbone).inputs(clozes, [subject_of(subject, backbone.tokenizer) for subject in subjects])


def word_vectors(model: PreTrainedModel) -> Tensor:
    """Return the input embeddings of the vocabulary, (v, h), not a copy."""
    return cast(Tensor, model.get_input_embeddings().weight)


def decoder(model: PreTrainedModel) -> nn.Linear:
    """Return the output matrix, with its bias."""
    return cast(nn.Linear, model.get_output_embeddings())


def states_at(model: PreTrainedModel, masks: Tensor, **inputs: Tensor) -> Tensor:
    """Return the output matrix's inputs at the positions where `masks`, (b, t), is True: (m, h)."""
    matrix = decoder(model)
    matrix.forward = lambda states: states[masks]  # type: ignore[method-assign, assignment]
    try:
        return cast(Tensor, model(**inputs).logits)
    finally:
        del matrix.forward


def at_masks(model: PreTrainedModel, masks: Tensor, columns: Tensor | None = None, **inputs: Tensor) -> Tensor:
    """Return logits over some words, or all, at the positions where `masks`, (b, t), is True: (m, v)."""
    matrix, chosen = decoder(model), slice(None) if columns is None else columns.to(masks.device)
    bias = None if matrix.bias is None else matrix.bias[chosen]
    return nn.functional.linear(states_at(model, masks, **inputs), matrix.weight[chosen], bias)


def buckets(inputs: Sequence[Sequence[int]], mask_id: int, tokens: int) -> Iterator[list[int]]:
    """Yield indices of inputs that can share a batch: equal lengths and numbers of masks, at most `tokens` tokens."""
    masks = [sum(token == mask_id for token in ids) for ids in inputs]
    if not all(masks):
        raise ValueError(f"input {masks.index(0)} holds no mask")
    alike = grouped(((len(ids), masks[index]), index) for index, ids in enumerate(inputs))
    for (length, _), indices in sorted(alike.items()):
        size = max(1, tokens // length)
        for start in range(0, len(indices), size):
            yield indices[start : start + size]


def padded(rows: Sequence[Sequence[int]], fill: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return rows as one padded tensor (b, t), and a mask that is 0 for padding (b, t)."""
    width = max(map(len, rows))
    ids = torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows], device=device)
    keep = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows], device=device)
    return ids, keep
