"""Soft prompts (OptiPrompt; Zhong, Friedman and Chen 2021): only the vectors between subject and mask are trained."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from lmkbc.atomic import write_bytes
from lmkbc.errors import InputError
from lmkbc.predict import Report, silent
from lmkbc.train.loop import Plan, Trained, train
from lmkbc.train.wording import at_masks, mask_id, padded, soft_loss, subject_of, word_vectors

if TYPE_CHECKING:
    from lmkbc.generate.masked.backbone import Backbone

SUBJECT, MASK, SOFT = -1, -2, -3
"""Places in a layout; any other number is a token id."""
FILE = "soft_prompts.safetensors"
BATCH = 256


@dataclass(frozen=True, slots=True, eq=False)
class SoftPrompt:
    """Where subject, mask and m trained vectors stand, and the vectors, (m, h).

    layout: token ids, special ones included, and SUBJECT, MASK and SOFT in their places.
    """

    layout: tuple[int, ...]
    vectors: Tensor

    @classmethod
    def manual(cls, backbone: Backbone, cloze: str) -> SoftPrompt:
        """A cloze whose every token becomes a vector, starting as that token's embedding; positions are kept."""
        words = cloze.format(subject="\x00", mask="\x01")
        parts = words.replace("\x00", "\x02\x00\x02").replace("\x01", "\x02\x01\x02").split("\x02")
        layout: list[int] = []
        tokens: list[int] = []
        for part in parts:
            if part in ("\x00", "\x01"):
                layout.append(SUBJECT if part == "\x00" else MASK)
            else:
                found = backbone.tokenizer(part, add_special_tokens=False)["input_ids"]
                layout += [SOFT] * len(found)
                tokens += found
        weights = word_vectors(backbone.model)
        return cls(_framed(backbone, layout), weights[tokens].detach().float().clone())

    @classmethod
    def random(cls, backbone: Backbone, length: int = 5, seed: int = 0) -> SoftPrompt:
        """Subject, `length` vectors drawn with the mean and spread of the model's embeddings, mask, full stop."""
        weights = word_vectors(backbone.model).detach().float()
        noise = torch.randn(length, weights.shape[1], generator=torch.Generator().manual_seed(seed))
        stop = backbone.tokenizer(".", add_special_tokens=False)["input_ids"]
        vectors = weights.mean(0).cpu() + weights.std().cpu() * noise
        return cls(_framed(backbone, [SUBJECT, *[SOFT] * length, MASK, *stop]), vectors.to(weights.device))


def _framed(backbone: Backbone, layout: Sequence[int]) -> tuple[int, ...]:
    """With the special tokens that the tokenizer puts around one text."""
    around = backbone.tokenizer(backbone.tokenizer.mask_token)["input_ids"]
    at = around.index(backbone.mask_id)
    return (*around[:at], *layout, *around[at + 1 :])


def mask_logits(backbone: Backbone, prompt: SoftPrompt, subjects: Sequence[str], columns: Tensor) -> Tensor:
    """Logits at the mask over some words, (b, v); gradients flow to the prompt's vectors."""
    tokenizer, device = backbone.tokenizer, backbone.device
    names = [subject_of(subject, tokenizer) for subject in subjects]
    pieces = tokenizer(names, add_special_tokens=False)["input_ids"]
    mask = mask_id(tokenizer)
    rows = [[token for place in prompt.layout for token in (name if place == SUBJECT else [place])] for name in pieces]
    ids, keep = padded(rows, cast(int, tokenizer.pad_token_id or 0), device)
    soft, at = ids == SOFT, ids == MASK
    embedded = backbone.model.get_input_embeddings()(ids.masked_fill(soft, mask).masked_fill(at, mask))
    embedded = embedded.masked_scatter(soft[..., None], prompt.vectors.to(embedded.dtype).repeat(len(rows), 1))
    return at_masks(backbone.model, at, columns, inputs_embeds=embedded, attention_mask=keep)


def train_soft_prompt(
    backbone: Backbone, prompt: SoftPrompt, subjects: Sequence[str], golds: Sequence[Sequence[int]], columns: Tensor,
    plan: Plan, *, held_out: tuple[Sequence[str], Sequence[Sequence[int]]] = ((), ()), checkpoint: Path | None = None,
    report: Report = silent,
) -> tuple[SoftPrompt, Trained]:  # fmt: skip
    """A better prompt for the same model, which stays as it is.

    golds: for each subject, which of the columns are right. held_out: subjects and golds to stop early by.
    """
    backbone.model.requires_grad_(False)
    vectors = nn.Parameter(prompt.vectors.detach().clone())
    trained = replace(prompt, vectors=vectors)

    def loss(numbers: Sequence[int]) -> Tensor:
        logits = mask_logits(backbone, trained, [subjects[number] for number in numbers], columns)
        return soft_loss(logits, [golds[number] for number in numbers])

    def held_out_loss() -> float:
        with torch.inference_mode():
            return float(soft_loss(mask_logits(backbone, trained, held_out[0], columns), held_out[1]))

    result = train(
        {"prompt": vectors}, loss, len(subjects), plan, name="soft prompt",
        held_out=held_out_loss if held_out[0] else None, checkpoint=checkpoint, report=report,
    )  # fmt: skip
    return replace(prompt, vectors=vectors.detach()), result


def precision(
    backbone: Backbone, prompt: SoftPrompt, subjects: Sequence[str], golds: Sequence[Sequence[int]], columns: Tensor
) -> float:
    """P@1: the share of subjects whose first column is right."""
    right = 0
    with torch.inference_mode():
        for start in range(0, len(subjects), BATCH):
            best = mask_logits(backbone, prompt, subjects[start : start + BATCH], columns).argmax(-1).tolist()
            right += sum(one in gold for one, gold in zip(best, golds[start : start + BATCH], strict=True))
    return right / len(subjects)


def write(path: Path, prompts: Mapping[str, SoftPrompt], model: str) -> None:
    """Keep soft prompts by relation, with the name of the model that they are for."""
    header = {"model": model, "layouts": {name: prompt.layout for name, prompt in prompts.items()}}
    tensors = {name: prompt.vectors.cpu().contiguous() for name, prompt in prompts.items()}
    write_bytes(path, save(tensors, metadata={"prompts": json.dumps(header)}))


def read(path: Path) -> dict[str, SoftPrompt]:
    """Soft prompts by relation. InputError for a file that holds none."""
    try:
        with safe_open(path, framework="pt") as file:
            layouts = json.loads((file.metadata() or {})["prompts"])["layouts"]
            return {name: SoftPrompt(tuple(layout), file.get_tensor(name)) for name, layout in layouts.items()}
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        raise InputError(
            f"{path} holds no soft prompts ({error}): train some with 'lmkbc train soft-prompt'"
        ) from error
