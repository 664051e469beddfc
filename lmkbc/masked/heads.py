"""A masked-LM head with the layers below it and its objects, separated from its model, and the reassembly of both."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import msgspec
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn
from transformers import BertForMaskedLM

from lmkbc.errors import InputError, OptionError
from lmkbc.masked.backbone import Backbone
from lmkbc.masked.forward import word_vectors

FILE = "entities.json"
NOTHING = "none"


@dataclass(frozen=True, slots=True, eq=False)
class Entities:
    """n objects, the first of which is "no object", spelled "".

    ids: QIDs, "" if unknown.
    rows: vocabulary rows.
    pieces: token ids of each object.
    relations: relation -> indices of its objects.
    folds: normal form of a training subject -> the fold whose head was trained without it.
    """

    names: tuple[str, ...]
    ids: tuple[str, ...]
    rows: tuple[int, ...]
    pieces: tuple[tuple[int, ...], ...]
    relations: Mapping[str, tuple[int, ...]]
    folds: Mapping[str, int] = field(default_factory=dict)

    @property
    def expanded(self) -> bool:
        """Return whether objects have additional rows after the vocabulary."""
        return self.rows[0] > max((piece for pieces in self.pieces for piece in pieces), default=0)

    def to_json(self) -> bytes:
        """Return the content of the file beside the weights."""
        return json.dumps(
            {
                "names": self.names,
                "ids": self.ids,
                "rows": self.rows,
                "pieces": self.pieces,
                "relations": self.relations,
                "folds": self.folds,
            },
            ensure_ascii=False,
        ).encode()

    @classmethod
    def read(cls, directory: Path) -> Entities:
        """Read the objects from a trained directory. Raise InputError if the file is missing or broken."""
        path = directory / FILE
        try:
            return msgspec.json.decode(path.read_bytes(), type=cls)
        except (OSError, msgspec.MsgspecError) as error:
            raise InputError(f"{path} is no list of objects ({error}); train the model again") from error


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
