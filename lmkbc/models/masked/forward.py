"""Forward pass of a masked LM, reduced to logits at the masks over the requested words.

Inputs of equal length with equally many masks share a batch, so there is no padding. The last layer and the head
compute only the mask positions, and the output matrix only the requested columns. In fp32 the results equal those of
the model. "bf16" keeps the head in fp32. "int8" quantises the encoder's linear layers (CPU only).
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, cast, get_args

import torch
from torch import Tensor, nn

from lmkbc.errors import InputError, did_you_mean
from lmkbc.models.masked.activations import bert_layer, buckets
from lmkbc.models.masked.backbone import Backbone
from lmkbc.models.masked.int8 import quantise

Precision = Literal["fp32", "bf16", "int8"]
Match = Literal["product", "distance"]
Ids = Sequence[int]
TOKENS = {"cpu": 512, "cuda": 32768}
"""Tokens per batch: enough for full speed, and on a CPU few enough for its caches."""
ROWS = 128
"""Masks that share one product with the output matrix: 16 MB of logits for BERT's vocabulary."""
CELLS = 1 << 28
"""Maximum logits at a time, 1 GB: large batches over a long vocabulary would exceed an accelerator's memory."""
BERT_LAYERS = frozenset(("bert", "camembert", "electra", "roberta", "xlm-roberta"))
"""Model types whose last layer is BERT's, so that it can be computed at the masks alone."""


class Forward:
    """Runs a backbone on token ids, without changing it.

    precision: number format of the encoder. match: score of a word from the state at a mask and the word's output
    vector: "product" (with the word's bias), or "distance" (negative Euclidean). Raise InputError for an unknown
    precision, or for int8 on other devices than the CPU.
    """

    def __init__(self, backbone: Backbone, precision: Precision = "fp32", match: Match = "product") -> None:
        if precision not in get_args(Precision):
            raise InputError(f"precision is {precision!r}: {did_you_mean(precision, get_args(Precision))}")
        self.backbone, self._tokens = backbone, TOKENS.get(backbone.device.type, 4096)
        if precision == "int8" and backbone.device.type != "cpu":
            raise InputError("precision int8 works on a CPU only: use bf16 on an accelerator, or device = 'cpu'")
        self._where, self._match = _Positions(), match
        decoder = cast(nn.Linear, backbone.model.get_output_embeddings())
        self._weight = decoder.weight.detach().float()
        self._bias = (
            self._weight.new_zeros(len(self._weight)) if decoder.bias is None else decoder.bias.detach().float()
        )
        self._model = _reduced(backbone, decoder, precision, self._where)

    def logits(self, inputs: Sequence[Ids], columns: Tensor | None = None) -> Iterator[tuple[list[int], Tensor]]:
        """Yield batches: the indices of b inputs, and their logits at m masks over v columns, (b, m, v) in fp32.

        columns: vocabulary ids, (v,); None for all. Every input holds at least one mask.
        """
        chosen = slice(None) if columns is None else columns.to(self.backbone.device)
        weight, bias = self._weight[chosen], self._bias[chosen]
        most = max(CELLS // len(weight), 1)
        for indices, states in _parted(_joined(self._states(inputs)), most):
            with torch.inference_mode():
                if self._match == "distance":
                    yield indices, -torch.cdist(states, weight)
                else:
                    yield indices, nn.functional.linear(states, weight, bias)

    def _states(self, inputs: Sequence[Ids]) -> Iterator[tuple[list[int], Tensor]]:
        """Yield batches of the output matrix's inputs, (b, m, h)."""
        for indices in buckets(inputs, self.backbone.mask_id, self._tokens):
            with torch.inference_mode():
                ids = torch.tensor([list(inputs[index]) for index in indices], device=self.backbone.device)
                self._where.set(ids == self.backbone.mask_id)
                states = self._model(input_ids=ids).logits.float()
            yield indices, states


def _joined(batches: Iterable[tuple[list[int], Tensor]]) -> Iterator[tuple[list[int], Tensor]]:
    """Yield batches joined to at least ROWS masks, since the output matrix is read once per batch."""
    indices: list[int] = []
    states: list[Tensor] = []
    for more, logits in batches:
        if states and (len(indices) * logits.shape[1] >= ROWS or states[0].shape[1] != logits.shape[1]):
            yield indices, torch.cat(states)
            indices, states = [], []
        indices, states = [*indices, *more], [*states, logits]
    if states:
        yield indices, torch.cat(states)


def _parted(batches: Iterable[tuple[list[int], Tensor]], most: int) -> Iterator[tuple[list[int], Tensor]]:
    """Yield batches of at most `most` masks, or of a single input with more."""
    for indices, states in batches:
        size = max(most // states.shape[1], 1)
        for start in range(0, len(indices), size):
            yield indices[start : start + size], states[start : start + size]


class _Positions:
    """Positions of the masks in the current batch."""

    def set(self, masks: Tensor) -> None:
        rows, self.columns = masks.nonzero(as_tuple=True)
        self.rows, self.shape = rows, (len(masks), len(rows) // len(masks))

    def pick(self, states: Tensor) -> Tensor:
        """Return the states at the masks: (b, length, h) -> (b, m, h)."""
        return states[self.rows, self.columns].view(*self.shape, -1)


class _Pick(nn.Module):
    """Replacement of the output matrix that returns the states at the masks, or its whole input."""

    def __init__(self, where: _Positions | None) -> None:
        super().__init__()
        self._where = where

    def forward(self, states: Tensor) -> Tensor:
        return states if self._where is None else self._where.pick(states)


class _LastLayer(nn.Module):
    """A layer of BERT's form that queries only the masks, since the head uses nothing else."""

    def __init__(self, layer: nn.Module, where: _Positions) -> None:
        super().__init__()
        self.layer, self._where = layer, where

    def forward(self, states: Tensor, *_: Any, **__: Any) -> Tensor:
        return bert_layer(self.layer, states, self._where.pick(states)).float()


def _reduced(backbone: Backbone, decoder: nn.Linear, precision: Precision, where: _Positions) -> nn.Module:
    """Return a model with shared parameters that returns the output matrix's input at the masks."""
    original: nn.Module = backbone.model
    prefix = backbone.model.base_model_prefix
    name = next(name for name, module in original.named_modules() if module is decoder)
    short = backbone.model.config.model_type in BERT_LAYERS
    model = shared_copy(original)
    if precision == "bf16":
        model = copy.deepcopy(original).to(torch.bfloat16)
        for part, child in original.named_children():
            if short and part != prefix:
                setattr(model, part, shared_copy(child))
    base: Any = model.get_submodule(prefix)
    model.set_submodule(name, _Pick(None if short else where))
    if short:
        base.encoder.layer[-1] = _LastLayer(base.encoder.layer[-1], where)
    if precision == "int8":
        quantise(base)
    return model


def shared_copy(module: nn.Module) -> nn.Module:
    """Return a copy of the tree of modules that shares their parameters."""
    copied = copy.copy(module)
    copied._modules = {name: None if child is None else shared_copy(child) for name, child in module._modules.items()}
    return copied
