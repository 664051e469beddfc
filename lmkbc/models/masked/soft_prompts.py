"""Trained soft prompts as clozes: their vectors become input rows of a model, so that a prompt is a list of token ids.

The rows follow the vocabulary and have no output row, so no prompt vector is ever proposed.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from lmkbc.errors import InputError
from lmkbc.models.masked.backbone import MASK, SOFT, SUBJECT, Backbone, Layout, subject_pieces
from lmkbc.models.masked.forward import at_masks, padded, word_vectors
from lmkbc.relation import Relation

STAND_IN = "Ada"
"""Subject that marks its place while a cloze is tokenised."""
FILE = "soft_prompts.safetensors"


def read_prompts(directory: Path) -> dict[str, SoftPrompt]:
    """Return the soft prompts beside a model, by the names of relations' modules.

    Raise InputError if there are none.
    """
    if not (directory / FILE).is_file():
        raise InputError(
            f"{directory} holds no {FILE}: name a directory that 'lmkbc train soft-prompt' made with --model, "
            "or set probe.soft_prompts = false"
        )
    return read(directory / FILE)


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

    @classmethod
    def manual(cls, backbone: Backbone, cloze: str) -> SoftPrompt:
        """Return a soft prompt from a cloze: each token becomes a vector, initialised with its embedding."""
        tokenizer = backbone.tokenizer
        text = cloze.format(subject=STAND_IN, mask=tokenizer.mask_token)
        start = len(cloze.partition("{subject}")[0].format(mask=tokenizer.mask_token))
        end = start + len(STAND_IN)
        start -= text[:start].endswith(" ")  # a space belongs to the next word
        encoded = tokenizer(text, return_offsets_mapping=True, return_special_tokens_mask=True, verbose=False)
        layout: list[int] = []
        tokens: list[int] = []
        places = zip(encoded["input_ids"], encoded["offset_mapping"], encoded["special_tokens_mask"], strict=True)
        for token, (low, high), special in places:
            if token == backbone.mask_id:
                layout.append(MASK)
            elif special:
                layout.append(token)
            elif low < end and high > start:
                layout += [SUBJECT] * (SUBJECT not in layout)
            else:
                layout.append(SOFT)
                tokens.append(token)
        if len(layout) > backbone.longest:
            raise InputError(f"cloze {cloze!r} is longer than the {backbone.longest} tokens that {backbone.name} reads")
        return cls(tuple(layout), word_vectors(backbone.model)[tokens].detach().float().clone())

    @classmethod
    def random(cls, backbone: Backbone, length: int = 5, seed: int = 0) -> SoftPrompt:
        """Return a prompt of the subject, `length` random vectors, mask and full stop.

        The vectors have the mean and the deviation of the model's embeddings.
        """
        weights = word_vectors(backbone.model).detach().float()
        noise = torch.randn(length, weights.shape[1], generator=torch.Generator().manual_seed(seed))
        stop = backbone.tokenizer(".", add_special_tokens=False)["input_ids"]
        vectors = weights.mean(0).cpu() + weights.std().cpu() * noise
        return cls(_framed(backbone, [SUBJECT, *[SOFT] * length, MASK, *stop]), vectors.to(weights.device))


def _framed(backbone: Backbone, layout: Sequence[int]) -> tuple[int, ...]:
    """Return a layout with the tokenizer's special tokens around it."""
    around = backbone.tokenizer(backbone.tokenizer.mask_token)["input_ids"]
    at = around.index(backbone.mask_id)
    return (*around[:at], *layout, *around[at + 1 :])


def mask_logits(backbone: Backbone, prompt: SoftPrompt, subjects: Sequence[str], columns: Tensor) -> Tensor:
    """Return logits at the mask over some words, (b, v); gradients flow to the prompt's vectors."""
    tokenizer, device = backbone.tokenizer, backbone.device
    pieces, mask = subject_pieces(prompt.layout, subjects, tokenizer), backbone.mask_id
    room = max(backbone.longest - len(prompt.layout) + 1, 0)
    rows = [
        [token for place in prompt.layout for token in (name[:room] if place == SUBJECT else [place])]
        for name in pieces
    ]
    ids, keep = padded(rows, cast(int, tokenizer.pad_token_id or 0), device)
    soft, at = ids == SOFT, ids == MASK
    embedded = backbone.model.get_input_embeddings()(ids.masked_fill(soft, mask).masked_fill(at, mask))
    embedded = embedded.masked_scatter(soft[..., None], prompt.vectors.to(embedded.dtype).repeat(len(rows), 1))
    return at_masks(backbone.model, at, columns, inputs_embeds=embedded, attention_mask=keep)


class _Header(msgspec.Struct):
    layouts: dict[str, list[int]]


def to_bytes(prompts: Mapping[str, SoftPrompt], model: str) -> bytes:
    """Return the content of a file with soft prompts by relation, and the name of their model."""
    header = {"model": model, "layouts": {name: prompt.layout for name, prompt in prompts.items()}}
    tensors = {name: prompt.vectors.cpu().contiguous() for name, prompt in prompts.items()}
    return save(tensors, metadata={"prompts": json.dumps(header)})


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
