"""A masked-LM head on an encoder that has none, trained with its top layers on facts.

The head is tied to the input embeddings. Expanded objects get rows of their own there, which are trained; all other
rows and the lower layers stay as they are. What comes out is an ordinary BertForMaskedLM in safetensors.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from lmkbc.errors import InputError
from lmkbc.files.atomic import with_record, write_directory
from lmkbc.models.masked.activations import Activations, activations
from lmkbc.models.masked.backbone import Backbone, quiet
from lmkbc.models.masked.entities import FILE, Entities
from lmkbc.models.masked.heads import Top
from lmkbc.models.masked.tensors import mask_id, masked
from lmkbc.progress import Report, silent
from lmkbc.train import MODEL
from lmkbc.train.loop import Plan, Trained, train
from lmkbc.train.losses import soft_loss
from lmkbc.types import Fact

if TYPE_CHECKING:
    from transformers import BertForMaskedLM

DROPOUT = 0.1


def open_encoder(name: str, seed: int = 0, *, offline: bool = False, device: str | None = None) -> Backbone:
    """The sentence encoder of the embedded default with an untrained head, or another encoder by directory or id."""
    from lmkbc.models.encoder import MODEL, find_encoder
    from lmkbc.models.masked.backbone import load

    where: str | Path = name
    if name in (MODEL, MODEL.rpartition("/")[2]):
        encoder = find_encoder()
        if encoder is None:
            raise InputError(f"{name} is not on this machine: install lmkbc[encoder], or name a directory")
        where = encoder.directory
    torch.manual_seed(seed)  # the new head's
    backbone = load(where, new_head=True, offline=offline, device=device)
    if backbone.model.config.model_type != "bert":
        raise InputError(f"{name} is a {backbone.model.config.model_type}: a head is put on BERT encoders only")
    return Backbone(name, backbone.model, backbone.tokenizer)


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
    items = [
        (number, cloze, gold)
        for number, (fact, gold) in enumerate(zip(facts, entities.numbers(facts), strict=True))
        if gold
        for cloze in fact.clozes[:clozes]
    ]
    if not items:
        raise InputError("no fact has an object that the model can answer with: give more facts, or expand")
    ids = masked(backbone, [cloze for _, cloze, _ in items], [facts[n].subject for n, _, _ in items])
    cached = activations(cast("BertForMaskedLM", backbone.model), ids, mask_id(backbone.tokenizer), top, report)
    return Prompts(cached, [gold for _, _, gold in items], [number for number, _, _ in items])


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
