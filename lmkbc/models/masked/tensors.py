"""Tensors of a masked model: token ids of clozes, padded inputs, logits at masks, word vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from lmkbc.models.masked.backbone import Backbone
from lmkbc.models.masked.clozes import Clozes, subject_of

BATCH = 256
"""Rows per batch outside training."""


def masked(backbone: Backbone, clozes: Sequence[str], subjects: Sequence[str]) -> list[list[int]]:
    """Return the token ids of n clozes with one mask each, special tokens included, as in training."""
    return Clozes(backbone).inputs(clozes, [subject_of(subject, backbone.tokenizer) for subject in subjects])


def word_vectors(model: PreTrainedModel) -> Tensor:
    """Return the input embeddings of the vocabulary, (v, h), not a copy."""
    return cast(Tensor, model.get_input_embeddings().weight)


def at_masks(model: PreTrainedModel, masks: Tensor, columns: Tensor | None = None, **inputs: Tensor) -> Tensor:
    """Return logits over some words, or all, at the positions where `masks`, (b, t), is True: (m, v).

    The output matrix computes only these.
    """
    decoder = cast(nn.Linear, model.get_output_embeddings())
    chosen = slice(None) if columns is None else columns.to(masks.device)
    bias = None if decoder.bias is None else decoder.bias[chosen]

    def reduced(states: Tensor) -> Tensor:
        return nn.functional.linear(states[masks], decoder.weight[chosen], bias)

    decoder.forward = reduced  # type: ignore[method-assign, assignment]
    try:
        return cast(Tensor, model(**inputs).logits)
    finally:
        del decoder.forward


def padded(rows: Sequence[Sequence[int]], fill: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return rows as one padded tensor (b, t), and a mask that is 0 for padding (b, t)."""
    width = max(map(len, rows))
    ids = torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows], device=device)
    keep = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows], device=device)
    return ids, keep
