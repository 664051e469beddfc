"""A masked-LM head with the layers below it, separated from its model, and the reassembly of both."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn
from transformers import BertForMaskedLM

from lmkbc.errors import InputError, OptionError
from lmkbc.models.masked.activations import Activations, bert_layer
from lmkbc.models.masked.backbone import Backbone
from lmkbc.models.masked.entities import Entities
from lmkbc.models.masked.tensors import word_vectors


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
