"""A masked-LM head with the layers below it, separated from its model, and the reassembly of both.

The activations of the frozen layers are computed once per prompt, and the layers above learn from them. The last layer
computes only the mask's position. This takes a fiftieth of the time of training all layers at every position.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn
from torch.nn import functional as fn
from transformers import BertForMaskedLM

from lmkbc.errors import InputError, OptionError
from lmkbc.models.hardware import half_precision
from lmkbc.models.masked.backbone import Backbone
from lmkbc.models.masked.forward import buckets, word_vectors
from lmkbc.models.masked.object_vectors import Entities
from lmkbc.progress import Report, silent

CACHED = 4096
"""Tokens per batch while the lower layers are computed."""


def bert_layer(
    layer: Any, hidden: Tensor, queried: Tensor | None = None, keep: Tensor | None = None, dropout: float = 0.0
) -> Tensor:
    """Compute a BERT layer: (b, t, h) -> (b, t, h), or only at the positions of `queried`, (b, m, h).

    keep: (b, t), False for padding; None without padding.
    """
    queried = hidden if queried is None else queried
    attention, heads = layer.attention.self, layer.attention.self.num_attention_heads

    def split(x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], heads, -1).transpose(1, 2)

    mixed = fn.scaled_dot_product_attention(
        split(attention.query(queried)),
        split(attention.key(hidden)),
        split(attention.value(hidden)),
        attn_mask=None if keep is None else keep[:, None, None],
    )
    out = layer.attention.output
    seen = out.LayerNorm(fn.dropout(out.dense(mixed.transpose(1, 2).flatten(-2)), dropout) + queried)
    wide = layer.intermediate.intermediate_act_fn(layer.intermediate.dense(seen))
    return cast(Tensor, layer.output.LayerNorm(fn.dropout(layer.output.dense(wide), dropout) + seen))


@dataclass(frozen=True, eq=False)
class Activations:
    """Activations of the frozen layers for n prompts.

    vectors: vectors of all tokens, one prompt after the other, in fp16.
    starts: index of each prompt's first vector.
    masks: position of the mask within each prompt.
    """

    vectors: Tensor
    starts: Tensor
    lengths: Tensor
    masks: Tensor

    def batch(self, numbers: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
        """Return vectors (b, t, h) in fp32, which of them are tokens (b, t), and the masks' positions (b,)."""
        chosen = torch.as_tensor(numbers)
        lengths = self.lengths[chosen]
        steps = torch.arange(int(lengths.max()))
        keep = steps < lengths[:, None]
        rows = (self.starts[chosen][:, None] + steps).clamp(max=len(self.vectors) - 1)
        return self.vectors[rows].float(), keep, self.masks[chosen]


def activations(
    model: BertForMaskedLM, prompts: Sequence[Sequence[int]], mask_id: int, top: int, report: Report = silent
) -> Activations:
    """Run all layers except the `top` last ones on n prompts of token ids with one mask each. Results are in fp16."""
    lengths = torch.tensor([len(prompt) for prompt in prompts])
    starts = torch.cumsum(lengths, 0) - lengths
    vectors = torch.empty(int(lengths.sum()), model.config.hidden_size, dtype=torch.float16)
    masks = torch.tensor([list(prompt).index(mask_id) for prompt in prompts])
    done = 0
    for same in buckets(prompts, mask_id, CACHED):
        ids = torch.tensor([list(prompts[number]) for number in same], device=model.device)
        keep = torch.ones_like(ids, dtype=torch.bool)
        with torch.inference_mode(), half_precision(model.device):
            hidden = model.bert.embeddings(input_ids=ids)
            for layer in model.bert.encoder.layer[: len(model.bert.encoder.layer) - top]:
                hidden = bert_layer(layer, hidden, keep=keep)
        rows = starts[torch.tensor(same)][:, None] + torch.arange(ids.shape[1])
        vectors[rows] = hidden.cpu().half()
        done += len(same)
        report("lower layers", done, len(prompts))
    return Activations(vectors, starts, lengths, masks)


class Top(nn.Module):
    """Layers above the frozen ones, the head's transform, and n objects' output rows and biases."""

    def __init__(self, model: BertForMaskedLM, entities: Entities, top: int) -> None:
        super().__init__()
        layers = model.bert.encoder.layer
        if not 1 <= top <= len(layers):
            raise OptionError("top", f"is {top}: the model has {len(layers)} layers, of which one to all can learn")
        self.layers = copy.deepcopy(layers[len(layers) - top :])
        self.transform = copy.deepcopy(model.cls.predictions.transform)
        words = model.bert.embeddings.word_embeddings.weight.detach()
        rows = torch.stack([words[list(pieces)].mean(0) for pieces in entities.pieces])
        self.rows = nn.Parameter(rows, requires_grad=entities.expanded)
        self.bias = nn.Parameter(rows.new_zeros(len(rows)))

    def forward(self, cached: Activations, numbers: Sequence[int], dropout: float = 0.0) -> Tensor:
        """Return logits over the n objects at the masks of cached prompts, (b, n)."""
        hidden, keep, at = (part.to(self.bias.device) for part in cached.batch(numbers))
        for layer in self.layers[:-1]:
            hidden = bert_layer(layer, hidden, keep=keep, dropout=dropout)
        queried = hidden[torch.arange(len(at), device=at.device), at][:, None]
        hidden = bert_layer(self.layers[-1], hidden, queried, keep, dropout)[:, 0]
        return cast(Tensor, self.transform(hidden) @ self.rows.T + self.bias)


def assemble(backbone: Backbone, head: Top, entities: Entities) -> BertForMaskedLM:
    """Return the whole model with the trained parts; expanded objects are rows after the vocabulary."""
    model = cast(BertForMaskedLM, copy.deepcopy(backbone.model))
    rows = torch.tensor(entities.rows)
    if entities.expanded:
        model.resize_token_embeddings(int(rows.max()) + 1, mean_resizing=False)
    layers = model.bert.encoder.layer
    with torch.no_grad():
        for old, new in zip(layers[len(layers) - len(head.layers) :], head.layers, strict=True):
            old.load_state_dict(new.state_dict())
        model.cls.predictions.transform.load_state_dict(head.transform.state_dict())
        if entities.expanded:
            word_vectors(model)[rows] = head.rows
        model.cls.predictions.bias[rows] = head.bias
    model.train(mode=False)
    return model


def fold_file(fold: int, head: Top) -> tuple[str, bytes]:
    """Return name and content of the file with the head of one fold."""
    return f"fold-{fold}.safetensors", save({name: value.contiguous() for name, value in head.state_dict().items()})


def fold_model(directory: Path, fold: int, backbone: Backbone, entities: Entities) -> Backbone:
    """Return the model of a trained directory with the head of one fold. Raise InputError if that head is missing."""
    path = directory / f"fold-{fold}.safetensors"
    try:
        values = load_file(path)
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} holds no head of a fold ({error}): train the model again") from error
    layers = {name.split(".")[1] for name in values if name.startswith("layers.")}
    head = Top(cast(BertForMaskedLM, backbone.model), entities, len(layers))
    try:
        head.load_state_dict(values)
    except RuntimeError:
        raise InputError(f"{path} is a head of another model: train the model again") from None
    return Backbone(backbone.name, assemble(backbone, head, entities), backbone.tokenizer)
