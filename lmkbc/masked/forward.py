"""Forward pass of a masked LM, reduced to logits at the masks over the requested words; and the tensors around it.

Inputs of equal length with equally many masks share a batch, so there is no padding. The output matrix computes only
the mask positions and the requested columns, in fp32. In fp32 the results equal those of the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from lmkbc.masked.backbone import Backbone, Clozes, subject_of
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


Ids = Sequence[int]
TOKENS = {"cpu": 512, "cuda": 32768}
"""Tokens per batch: enough for full speed, and on a CPU few enough for its caches."""
ROWS = 128
"""Masks that share one product with the output matrix: 16 MB of logits for BERT's vocabulary."""
CELLS = 1 << 28
"""Maximum logits at a time, 1 GB: large batches over a long vocabulary would exceed an accelerator's memory."""


class Forward:
    """Runs a backbone on token ids, without changing it."""

    def __init__(self, backbone: Backbone) -> None:
        self.backbone = backbone
        self._tokens = TOKENS.get(backbone.device.type, 4096)
        matrix = decoder(backbone.model)
        self._weight = matrix.weight.detach().to(torch.promote_types(matrix.weight.dtype, torch.float32))
        zeros = self._weight.new_zeros(len(self._weight))
        self._bias = zeros if matrix.bias is None else matrix.bias.detach().to(zeros.dtype)

    def logits(self, inputs: Sequence[Ids], columns: Tensor | None = None) -> Iterator[tuple[list[int], Tensor]]:
        """Yield batches: the indices of b inputs, and their logits at m masks over v columns, (b, m, v).

        They are in the precision of the weights, at least fp32.

        columns: vocabulary ids, (v,); None for all. Every input holds at least one mask.
        """
        chosen = slice(None) if columns is None else columns.to(self.backbone.device)
        weight, bias = self._weight[chosen], self._bias[chosen]
        most = max(CELLS // len(weight), 1)
        for indices, states in _parted(_joined(self._states(inputs)), most):
            with torch.inference_mode():
                yield indices, self.scored(states, weight, bias)

    def scored(self, states: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Return the logits of words, (b, m, v). states: (b, m, h). weight, bias: of words' outputs, (v, h), (v,)."""
        return nn.functional.linear(states, weight, bias)

    def _states(self, inputs: Sequence[Ids]) -> Iterator[tuple[list[int], Tensor]]:
        """Yield batches of the output matrix's inputs, (b, m, h)."""
        for indices in buckets(inputs, self.backbone.mask_id, self._tokens):
            with torch.inference_mode():
                ids = torch.tensor([list(inputs[index]) for index in indices], device=self.backbone.device)
                states = states_at(self.backbone.model, ids == self.backbone.mask_id, input_ids=ids)
            yield indices, states.to(self._weight.dtype).view(len(indices), -1, states.shape[-1])


def _joined(batches: Iterable[tuple[list[int], Tensor]]) -> Iterator[tuple[list[int], Tensor]]:
    """Yield batches joined to at least ROWS masks, since the output matrix is read once per batch."""
    indices: list[int] = []
    states: list[Tensor] = []
    for more, found in batches:
        if states and (len(indices) * found.shape[1] >= ROWS or states[0].shape[1] != found.shape[1]):
            yield indices, torch.cat(states)
            indices, states = [], []
        indices, states = [*indices, *more], [*states, found]
    if states:
        yield indices, torch.cat(states)


def _parted(batches: Iterable[tuple[list[int], Tensor]], most: int) -> Iterator[tuple[list[int], Tensor]]:
    """Yield batches of at most `most` masks, or of a single input with more."""
    for indices, states in batches:
        size = max(most // states.shape[1], 1)
        for start in range(0, len(indices), size):
            yield indices[start : start + size], states[start : start + size]
