"""Trained soft prompts as clozes: their vectors become input rows of a model, so that a prompt is a list of token ids.

The rows follow the vocabulary and have no output row, so no prompt vector is ever proposed.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from lmkbc.errors import InputError
from lmkbc.masked.backbone import SOFT, Backbone, Layout
from lmkbc.relation import Relation

FILE = "soft_prompts.safetensors"


def read_prompts(directory: Path) -> dict[str, SoftPrompt]:
    """Return the soft prompts beside a model, by the names of relations' modules; none for a model without any."""
    return read(directory / FILE) if (directory / FILE).is_file() else {}


def with_prompts(backbone: Backbone, prompts: Mapping[str, SoftPrompt]) -> tuple[Backbone, dict[str, Layout]]:
    """Return a backbone with shared weights and the prompts' vectors as rows, and each prompt's layout.

    Raise InputError if the prompts are for another model.
    """
    model: Any = _shared_copy(backbone.model)
    table = model.get_input_embeddings().weight.detach()
    rows, layouts = [table], dict[str, Layout]()
    size = len(table)
    for name, prompt in prompts.items():
        fits = prompt.vectors.shape[1:] == table.shape[1:] and max(prompt.layout) < len(table)
        if not fits or prompt.layout.count(SOFT) != len(prompt.vectors):
            raise InputError(f"the soft prompt of {name} is not for {backbone.name}: train it on this model")
        numbers = iter(range(size, size + len(prompt.vectors)))
        layouts[name] = tuple(next(numbers) if place == SOFT else place for place in prompt.layout)
        rows.append(prompt.vectors.to(table))
        size += len(prompt.vectors)
    model.set_input_embeddings(nn.Embedding(size, table.shape[1], _weight=torch.cat(rows)))
    return Backbone(backbone.name, model, backbone.tokenizer), layouts


def _shared_copy(module: nn.Module) -> nn.Module:
    """Return a copy of the tree of modules that shares their parameters."""
    copied = copy.copy(module)
    copied._modules = {name: None if child is None else _shared_copy(child) for name, child in module._modules.items()}
    return copied


def cloze_of(relation: Relation) -> str:
    """Return the name of a relation's soft prompt among its clozes."""
    return f"the soft prompt of {relation.name}"


@dataclass(frozen=True, slots=True, eq=False)
class SoftPrompt:
    """A prompt with subject, mask and m trained vectors, (m, h).

    layout: token ids, special ones included, with SUBJECT, MASK and SOFT as placeholders.
    """

    layout: Layout
    vectors: Tensor


class _Header(msgspec.Struct):
    layouts: dict[str, list[int]]


def read(path: Path) -> dict[str, SoftPrompt]:
    """Read soft prompts by relation. Raise InputError for a file without them."""
    try:
        with safe_open(path, framework="pt") as file:
            layouts = msgspec.json.decode((file.metadata() or {})["prompts"], type=_Header).layouts
            prompts = {name: SoftPrompt(tuple(layout), file.get_tensor(name)) for name, layout in layouts.items()}
        if not all(prompt.vectors.isfinite().all() for prompt in prompts.values()):
            raise ValueError("a vector is not finite")
        return prompts
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        raise InputError(
            f"{path} holds no soft prompts ({error}): train some with 'lmkbc train soft-prompt'"
        ) from error
