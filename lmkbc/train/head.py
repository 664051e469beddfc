"""A masked-LM head on an encoder that has none, trained with its top layers on facts.

The head is tied to the input embeddings. Expanded objects get rows of their own there, which are trained; all other
rows and the lower layers stay as they are. What comes out is an ordinary BertForMaskedLM in safetensors.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from lmkbc.errors import InputError
from lmkbc.files.atomic import with_record, write_directory
from lmkbc.models.masked.backbone import Backbone, quiet
from lmkbc.models.masked.tensors import mask_id, masked, word_vectors
from lmkbc.progress import Report, silent
from lmkbc.train import MODEL
from lmkbc.train.activations import Activations, activations, layer_at
from lmkbc.train.entities import FILE, Entities
from lmkbc.train.facts import Fact
from lmkbc.train.loop import Plan, Trained, train
from lmkbc.train.losses import soft_loss

if TYPE_CHECKING:
    from transformers import BertForMaskedLM

DROPOUT = 0.1


def open_encoder(name: str, seed: int = 0, *, offline: bool = False, device: str | None = None) -> Backbone:
    """The sentence encoder of the embedded default with an untrained head, or another encoder by directory or id."""
    from lmkbc.models.encoder import MODEL, find_encoder
    from lmkbc.models.masked.backbone import load

    where: str | Path = name
    if name in (MODEL, MODEL.rpartition("/")[2]):
        found = find_encoder()
        if found is None:
            raise InputError(f"{name} is not on this machine: install lmkbc[encoder], or name a directory")
        where = found.directory
    torch.manual_seed(seed)  # the new head's
    backbone = load(where, new_head=True, offline=offline, device=device)
    if backbone.model.config.model_type != "bert":
        raise InputError(f"{name} is a {backbone.model.config.model_type}: a head is put on BERT encoders only")
    return Backbone(name, backbone.model, backbone.tokenizer)


class Top(nn.Module):
    """Layers above the frozen ones, the head's transform, and n objects' output rows and biases."""

    def __init__(self, model: BertForMaskedLM, entities: Entities, top: int) -> None:
        super().__init__()
        layers = model.bert.encoder.layer
        if not 1 <= top <= len(layers):
            raise InputError(f"top is {top}: the model has {len(layers)} layers, of which one to all can learn")
        self.layers = copy.deepcopy(layers[len(layers) - top :])
        self.transform = copy.deepcopy(model.cls.predictions.transform)
        words = model.bert.embeddings.word_embeddings.weight.detach()
        rows = torch.stack([words[list(pieces)].mean(0) for pieces in entities.pieces])
        self.rows = nn.Parameter(rows, requires_grad=entities.expanded)
        self.bias = nn.Parameter(rows.new_zeros(len(rows)))

    def forward(self, cached: Activations, numbers: Sequence[int], dropout: float = 0.0) -> Tensor:
        """Logits over the n objects at the masks of some cached prompts, (b, n)."""
        hidden, keep, at = (part.to(self.bias.device) for part in cached.batch(numbers))
        for layer in self.layers[:-1]:
            hidden = layer_at(layer, hidden, keep, dropout=dropout)
        hidden = layer_at(self.layers[-1], hidden, keep, at, dropout)[:, 0]
        return cast(Tensor, self.transform(hidden) @ self.rows.T + self.bias)

    def trained(self) -> dict[str, nn.Parameter]:
        """The parameters that learn, by name."""
        return {name: value for name, value in self.named_parameters() if value.requires_grad}


@dataclass(frozen=True, eq=False)
class Prompts:
    """Cached prompts, one for each cloze of each fact that has a known object, and their gold objects' numbers."""

    cached: Activations
    golds: list[list[int]]
    facts: list[int]


def prepare(
    backbone: Backbone,
    facts: Sequence[Fact],
    entities: Entities,
    top: int,
    clozes: int | None = None,
    report: Report = silent,
) -> Prompts:
    """Run the frozen layers on the first clozes (all if None) of the facts that the objects can answer."""
    asked = [
        (number, cloze, gold)
        for number, (fact, gold) in enumerate(zip(facts, entities.numbers(facts), strict=True))
        if gold
        for cloze in fact.clozes[:clozes]
    ]
    if not asked:
        raise InputError("no fact has an object that the model can answer with: give more facts, or expand")
    ids = masked(backbone, [cloze for _, cloze, _ in asked], [facts[n].subject for n, _, _ in asked])
    cached = activations(cast("BertForMaskedLM", backbone.model), ids, mask_id(backbone.tokenizer), top, report)
    return Prompts(cached, [gold for _, _, gold in asked], [number for number, _, _ in asked])


def train_top(
    head: Top,
    prompts: Prompts,
    plan: Plan,
    *,
    held_out: Prompts | None = None,
    checkpoint: Path | None = None,
    report: Report = silent,
) -> Trained:
    """Train the head, in place, on cached prompts; stop early by the loss on others."""

    def loss(numbers: Sequence[int]) -> Tensor:
        return soft_loss(head(prompts.cached, numbers, DROPOUT), [prompts.golds[number] for number in numbers])

    def held_out_loss() -> float:
        assert held_out is not None  # noqa: S101
        with torch.inference_mode():
            parts = list(_parts(len(held_out.golds), plan.batch))
            total = sum(
                float(soft_loss(head(held_out.cached, part), [held_out.golds[n] for n in part])) * len(part)
                for part in parts
            )
        return total / len(held_out.golds)

    return train(
        head.trained(),
        loss,
        len(prompts.golds),
        plan,
        name="masked-LM head",
        about=(prompts.golds, prompts.cached.lengths.tolist(), prompts.cached.masks.tolist()),
        held_out=held_out_loss if held_out else None,
        checkpoint=checkpoint,
        report=report,
    )


def _parts(count: int, size: int) -> Iterator[range]:
    for start in range(0, count, size):
        yield range(start, min(start + size, count))


def assemble(backbone: Backbone, head: Top, entities: Entities) -> BertForMaskedLM:
    """The whole model with the trained parts in it; expanded objects are rows behind the vocabulary."""
    model = cast("BertForMaskedLM", copy.deepcopy(backbone.model))
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
    """Name and content of the file that keeps the head of one fold beside the model."""
    return f"fold-{fold}.safetensors", save({name: value.contiguous() for name, value in head.state_dict().items()})


def fold_model(directory: Path, fold: int, backbone: Backbone, entities: Entities) -> Backbone:
    """The model of a trained directory with the head of one fold in place of its own.

    InputError when that head is not there.
    """
    path = directory / f"fold-{fold}.safetensors"
    try:
        values = load_file(path)
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} holds no head of a fold ({error}): train the model again") from error
    layers = {name.split(".")[1] for name in values if name.startswith("layers.")}
    head = Top(cast("BertForMaskedLM", backbone.model), entities, len(layers))
    try:
        head.load_state_dict(values)
    except RuntimeError:
        raise InputError(f"{path} is a head of another model: train the model again") from None
    return Backbone(backbone.name, assemble(backbone, head, entities), backbone.tokenizer)


def write(
    directory: Path,
    model: Any,
    tokenizer: Any,
    entities: Entities | None,
    facts: dict[str, Any],
    more: Mapping[str, bytes] | None = None,
) -> None:
    """Write a directory with a model that any code can load, its objects, and what it was trained on.

    more: other files, by name. An older model there is replaced; InputError where the directory is not a model's.
    """
    with tempfile.TemporaryDirectory() as folder, quiet():
        model.save_pretrained(folder, safe_serialization=True)
        tokenizer.save_pretrained(folder)
        files = {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}
    if entities is not None:
        files[FILE] = entities.to_json()
    write_directory(directory, with_record(MODEL, files | dict(more or {}), facts), MODEL)
