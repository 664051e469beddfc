"""Task-specific masked-LM training on verbalised triples (Li T. et al., LM-KBC 2022, section 1.2 of their code)."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch
from transformers import PreTrainedTokenizerBase

from lmkbc.errors import InputError
from lmkbc.models.masked.backbone import Backbone
from lmkbc.models.masked.clozes import subject_of
from lmkbc.models.masked.tensors import padded
from lmkbc.progress import Report, silent
from lmkbc.train.loop import Trained, train
from lmkbc.train.settings import Masking, TrainingPlan
from lmkbc.types import Fact

IGNORED = -100
RANDOM_SHARE = 0.15
MOST_OBJECTS = 5
"""Most objects of one subject to train on, as in the authors' code."""


@dataclass(frozen=True, slots=True)
class MaskedText:
    """Token ids with masks, and labels: the original token of each mask, -100 elsewhere."""

    ids: tuple[int, ...]
    labels: tuple[int, ...]


def verbalised(
    facts: Sequence[Fact | str], backbone: Backbone, masking: Masking, seed: int = 0
) -> Iterator[MaskedText]:
    """Yield every fact in its first cloze with at most five of its objects, masked by the policy.

    A string is a sentence, which is masked at random; InputError for another policy. A text longer than the model's
    input is cut at its end.
    """
    draw, tokenizer, longest = random.Random(seed), backbone.tokenizer, backbone.longest
    for fact in facts:
        if isinstance(fact, str) and not masking.random:
            raise InputError("sentences have no object to mask: use --mask random")
        for text, span in (
            [(fact, (0, 0))] if isinstance(fact, str) else _worded(fact, tokenizer, masking.nothing, draw)
        ):
            encoded = tokenizer(text, return_offsets_mapping=True, return_special_tokens_mask=True, verbose=False)
            if len(encoded["input_ids"]) > longest:
                encoded = {key: [*each[: longest - 1], each[-1]] for key, each in encoded.items()}
            yield from _masked(encoded, span, masking, backbone.mask_id, draw)


def _worded(
    fact: Fact, tokenizer: PreTrainedTokenizerBase, nothing: str, draw: random.Random
) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield sentences that state the fact, one per object, with the object's (start, end) in characters."""
    objects = list(fact.objects) or [nothing] * bool(nothing)
    for name in draw.sample(objects, min(len(objects), MOST_OBJECTS)):
        before, after = fact.clozes[0].split("{mask}")
        start = before.replace("{subject}", subject_of(fact.subject, tokenizer))
        rest = after.replace("{subject}", subject_of(fact.subject, tokenizer))
        shown = subject_of(name, tokenizer)
        yield start + shown + rest, (len(start), len(start) + len(shown))


def _masked(
    encoded: dict[str, list[int]], span: tuple[int, int], masking: Masking, mask: int, draw: random.Random
) -> Iterator[MaskedText]:
    ids = encoded["input_ids"]
    words = [at for at, special in enumerate(encoded["special_tokens_mask"]) if not special and ids[at] != mask]
    if not words:
        return
    if masking.random:
        hidden = [at for at in words if draw.random() < RANDOM_SHARE] or [draw.choice(words)]
    else:
        offsets = cast(list[tuple[int, int]], encoded["offset_mapping"])
        inside = [at for at in words if offsets[at][0] < span[1] and offsets[at][1] > span[0]]
        if not inside:
            return
        low, high = inside[0] - masking.window, inside[-1] + masking.window
        hidden = [at for at in words if low <= at <= high]
    for chosen in [[at] for at in hidden] if masking.apart else [hidden]:
        labels = [IGNORED] * len(ids)
        for at in chosen:
            labels[at] = ids[at]
        yield MaskedText(tuple(mask if at in chosen else token for at, token in enumerate(ids)), tuple(labels))


def train_mlm(
    backbone: Backbone,
    facts: Sequence[Fact | str],
    held_out: Sequence[Fact | str],
    plan: TrainingPlan,
    masking: Masking,
    *,
    checkpoint: Path | None = None,
    report: Report = silent,
) -> Trained:
    """Train all weights of the backbone, in place, on facts or sentences. Stop early by the loss on held-out ones."""
    model, fill = backbone.model, cast(int, backbone.tokenizer.pad_token_id or 0)
    rows, others = (list(verbalised(part, backbone, masking, plan.seed)) for part in (facts, held_out))

    def loss(of: Sequence[MaskedText]) -> torch.Tensor:
        ids, keep = padded([row.ids for row in of], fill, backbone.device)
        labels, _ = padded([row.labels for row in of], IGNORED, backbone.device)
        return cast(torch.Tensor, model(input_ids=ids, attention_mask=keep, labels=labels).loss)

    return train(
        model,
        loss,
        rows,
        plan,
        name="masked LM",
        held_out=others,
        checkpoint=checkpoint,
        report=report,
    )
