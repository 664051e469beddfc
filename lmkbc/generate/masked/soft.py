"""Trained soft prompts as clozes: their vectors become input rows of a model, so that a prompt is a row of token ids.

The rows stand behind the vocabulary and have no output row: no prompt's vector is ever proposed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from lmkbc.errors import InputError
from lmkbc.generate.masked.backbone import Backbone
from lmkbc.generate.masked.clozes import Layout
from lmkbc.generate.masked.forward import twin
from lmkbc.types import Relation

if TYPE_CHECKING:
    from lmkbc.train.soft_prompt import SoftPrompt


def read_prompts(directory: Path) -> dict[str, SoftPrompt]:
    """The soft prompts beside a model, by the names of relations' modules. InputError where there are none."""
    from lmkbc.train.soft_prompt import FILE, read

    if not (directory / FILE).is_file():
        raise InputError(
            f"{directory} holds no {FILE}: name a directory that 'lmkbc train soft-prompt' made with --model, "
            "or set probe.soft_prompts = false"
        )
    return read(directory / FILE)


def with_prompts(backbone: Backbone, prompts: Mapping[str, SoftPrompt]) -> tuple[Backbone, dict[str, Layout]]:
    """A backbone that shares all weights and knows the prompts' vectors, and each prompt as ids and places.

    InputError when the prompts are not for this model.
    """
    from lmkbc.train.soft_prompt import SOFT

    model: Any = twin(backbone.model)
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


def by_cloze(layouts: Mapping[str, Layout], relations: Iterable[Relation]) -> dict[str, Layout]:
    """The layouts of the relations, by what stands for a soft prompt among a relation's clozes."""
    return {cloze_of(one): layouts[one.name] for one in relations if one.name in layouts}


def cloze_of(relation: Relation) -> str:
    """What stands for a relation's soft prompt among its clozes."""
    return f"the soft prompt of {relation.name}"
