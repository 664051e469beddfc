"""Soft prompts (OptiPrompt; Zhong, Friedman and Chen 2021): only the vectors between subject and mask are trained."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from lmkbc.errors import InputError
from lmkbc.progress import Report, silent
from lmkbc.train.loop import Plan, Trained, train
from lmkbc.train.wording import BATCH, Loss, at_masks, mask_id, mean_loss, padded, soft_loss, subject_of, word_vectors

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from lmkbc.generate.masked.backbone import Backbone

Layout = tuple[int, ...]
SUBJECT, MASK, SOFT = -1, -2, -3
"""Places in a layout; any other number is a token id."""
STAND_IN = "Ada"
"""Holds the subject's place while a cloze is taken apart."""
FILE = "soft_prompts.safetensors"


@dataclass(frozen=True, slots=True, eq=False)
class SoftPrompt:
    """Where subject, mask and m trained vectors stand, and the vectors, (m, h).

    layout: token ids, special ones included, and SUBJECT, MASK and SOFT in their places.
    """

    layout: Layout
    vectors: Tensor

    @classmethod
    def manual(cls, backbone: Backbone, cloze: str) -> SoftPrompt:
        """A cloze whose every token becomes a vector, starting as that token's embedding; positions are kept."""
        tokenizer = backbone.tokenizer
        text = cloze.format(subject=STAND_IN, mask=tokenizer.mask_token)
        start = len(cloze.partition("{subject}")[0].format(mask=tokenizer.mask_token))
        end = start + len(STAND_IN)
        start -= text[:start].endswith(" ")  # where a space belongs to the word behind it
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


def subject_pieces(prompt: Layout, subjects: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> list[list[int]]:
    """The tokens of each subject as they stand in a prompt: within a text, where a space goes before, or first."""
    first = set(prompt[: prompt.index(SUBJECT)]) <= set(tokenizer.all_special_ids)
    space = "" if first else " "
    names = [space + subject_of(subject, tokenizer) for subject in subjects]
    return list(tokenizer(names, add_special_tokens=False, verbose=False)["input_ids"])


def mask_logits(backbone: Backbone, prompt: SoftPrompt, subjects: Sequence[str], columns: Tensor) -> Tensor:
    """Logits at the mask over some words, (b, v); gradients flow to the prompt's vectors."""
    tokenizer, device = backbone.tokenizer, backbone.device
    pieces, mask = subject_pieces(prompt.layout, subjects, tokenizer), mask_id(tokenizer)
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


def train_soft_prompt(
    backbone: Backbone, prompt: SoftPrompt, subjects: Sequence[str], golds: Sequence[Sequence[int]], columns: Tensor,
    plan: Plan, *, held_out: tuple[Sequence[str], Sequence[Sequence[int]]] = ((), ()), criterion: Loss = soft_loss,
    checkpoint: Path | None = None, report: Report = silent,
) -> tuple[SoftPrompt, Trained]:  # fmt: skip
    """A better prompt for the same model, which stays as it is.

    golds: for each subject, which of the columns are right. held_out: subjects and golds to stop early by.
    """
    backbone.model.requires_grad_(False)
    vectors = nn.Parameter(prompt.vectors.detach().clone())
    trained = replace(prompt, vectors=vectors)

    def loss(numbers: Sequence[int]) -> Tensor:
        logits = mask_logits(backbone, trained, [subjects[number] for number in numbers], columns)
        return criterion(logits, [golds[number] for number in numbers])

    def held_out_loss() -> float:
        return mean_loss(lambda part: mask_logits(backbone, trained, part, columns), *held_out, criterion)

    result = train(
        {"prompt": vectors}, loss, len(subjects), plan, name="soft prompt",
        about=(prompt.layout, subjects, golds, columns.tolist(), criterion.__name__),
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


class _Header(msgspec.Struct):
    layouts: dict[str, list[int]]


def to_bytes(prompts: Mapping[str, SoftPrompt], model: str) -> bytes:
    """The file that keeps soft prompts by relation, with the name of the model that they are for."""
    header = {"model": model, "layouts": {name: prompt.layout for name, prompt in prompts.items()}}
    tensors = {name: prompt.vectors.cpu().contiguous() for name, prompt in prompts.items()}
    return save(tensors, metadata={"prompts": json.dumps(header)})


def read(path: Path) -> dict[str, SoftPrompt]:
    """Soft prompts by relation. InputError for a file that holds none."""
    try:
        with safe_open(path, framework="pt") as file:
            layouts = msgspec.json.decode((file.metadata() or {})["prompts"], type=_Header).layouts
            found = {name: SoftPrompt(tuple(layout), file.get_tensor(name)) for name, layout in layouts.items()}
        if not all(one.vectors.isfinite().all() for one in found.values()):
            raise ValueError("a vector is not finite")
        return found
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        raise InputError(
            f"{path} holds no soft prompts ({error}): train some with 'lmkbc train soft-prompt'"
        ) from error
