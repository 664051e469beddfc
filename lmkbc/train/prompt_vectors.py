"""Soft prompts as they are taught: made from a cloze or at random, and their logits at the mask."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import cast

import torch
from safetensors.torch import save
from torch import Tensor, nn
from transformers import PreTrainedModel

from lmkbc.errors import InputError
from lmkbc.masked.backbone import MASK, SOFT, SUBJECT, Backbone, subject_pieces
from lmkbc.masked.forward import decoder, states_at, word_vectors
from lmkbc.masked.soft_prompts import SoftPrompt

STAND_IN = "Ada"
"""Subject that marks its place while a cloze is tokenised."""


def manual_prompt(backbone: Backbone, cloze: str) -> SoftPrompt:
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
    return SoftPrompt(tuple(layout), word_vectors(backbone.model)[tokens].detach().float().clone())


def random_prompt(backbone: Backbone, length: int = 5, seed: int = 0) -> SoftPrompt:
    """Return a prompt of the subject, `length` random vectors, mask and full stop.

    The vectors have the mean and the deviation of the model's embeddings.
    """
    weights = word_vectors(backbone.model).detach().float()
    noise = torch.randn(length, weights.shape[1], generator=torch.Generator().manual_seed(seed))
    stop = backbone.tokenizer(".", add_special_tokens=False)["input_ids"]
    vectors = weights.mean(0).cpu() + weights.std().cpu() * noise
    return SoftPrompt(_framed(backbone, [SUBJECT, *[SOFT] * length, MASK, *stop]), vectors.to(weights.device))


def _framed(backbone: Backbone, layout: Sequence[int]) -> tuple[int, ...]:
    """Return a layout with the tokenizer's special tokens around it."""
    around = backbone.tokenizer(backbone.tokenizer.mask_token)["input_ids"]
    at = around.index(backbone.mask_id)
    return (*around[:at], *layout, *around[at + 1 :])


def padded(rows: Sequence[Sequence[int]], fill: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return rows as one padded tensor (b, t), and a mask that is 0 for padding (b, t)."""
    width = max(map(len, rows))
    ids = torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows], device=device)
    keep = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows], device=device)
    return ids, keep


def at_masks(model: PreTrainedModel, masks: Tensor, columns: Tensor | None = None, **inputs: Tensor) -> Tensor:
    """Return logits over some words, or all, at the positions where `masks`, (b, t), is True: (m, v)."""
    matrix, chosen = decoder(model), slice(None) if columns is None else columns.to(masks.device)
    bias = None if matrix.bias is None else matrix.bias[chosen]
    return nn.functional.linear(states_at(model, masks, **inputs), matrix.weight[chosen], bias)


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


def to_bytes(prompts: Mapping[str, SoftPrompt], model: str) -> bytes:
    """Return the content of a file with soft prompts by relation, and the name of their model."""
    header = {"model": model, "layouts": {name: prompt.layout for name, prompt in prompts.items()}}
    tensors = {name: prompt.vectors.cpu().contiguous() for name, prompt in prompts.items()}
    return save(tensors, metadata={"prompts": json.dumps(header)})
