"""Training on clozes (OptiPrompt; Zhong, Friedman and Chen 2021): of all weights, or only of the prompt's vectors.

All weights: section 3 of the paper, and Yang et al. 2023. Soft prompts: only the vectors between subject and mask.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn

from lmkbc.models.masked.backbone import Backbone
from lmkbc.models.masked.soft_prompts import SoftPrompt, mask_logits
from lmkbc.models.masked.tensors import BATCH, at_masks, padded
from lmkbc.progress import Report, silent
from lmkbc.train.loop import Trained, train
from lmkbc.train.losses import Loss, soft_loss
from lmkbc.train.settings import TrainingPlan

Prompts = Sequence[tuple[Sequence[int], Sequence[int]]]
"""For each prompt: its token ids, and the right columns."""
Subjects = Sequence[tuple[str, Sequence[int]]]
"""For each prompt: its subject, and the right columns."""


def cloze_logits(backbone: Backbone, prompts: Sequence[Sequence[int]], columns: Tensor) -> Tensor:
    """Return the logits at the only mask of each prompt of token ids, for the given columns, (b, v)."""
    ids, keep = padded(prompts, cast(int, backbone.tokenizer.pad_token_id or 0), backbone.device)
    masks = ids == backbone.mask_id
    return at_masks(backbone.model, masks, columns, input_ids=ids, attention_mask=keep)


def finetune(
    backbone: Backbone,
    prompts: Prompts,
    columns: Tensor,
    plan: TrainingPlan,
    *,
    held_out: Prompts = (),
    checkpoint: Path | None = None,
    report: Report = silent,
) -> Trained:
    """Train all weights in place."""

    def loss(part: Prompts) -> Tensor:
        return soft_loss(cloze_logits(backbone, [ids for ids, _ in part], columns), [gold for _, gold in part])

    return train(
        backbone.model,
        loss,
        prompts,
        plan,
        name="fine-tuning",
        held_out=held_out,
        held_out_batch=BATCH,
        checkpoint=checkpoint,
        report=report,
    )


def train_soft_prompt(
    backbone: Backbone,
    prompt: SoftPrompt,
    subjects: Subjects,
    columns: Tensor,
    plan: TrainingPlan,
    *,
    held_out: Subjects = (),
    criterion: Loss = soft_loss,
    checkpoint: Path | None = None,
    report: Report = silent,
) -> tuple[SoftPrompt, Trained]:
    """Return a better prompt for the same model. The model is not changed."""
    backbone.model.requires_grad_(False)
    vectors = nn.Parameter(prompt.vectors.detach().clone())
    trained = replace(prompt, vectors=vectors)

    def loss(part: Subjects) -> Tensor:
        logits = mask_logits(backbone, trained, [subject for subject, _ in part], columns)
        return criterion(logits, [gold for _, gold in part])

    result = train(
        nn.ParameterDict({"prompt": vectors}),
        loss,
        subjects,
        plan,
        name="soft prompt",
        about=(prompt.layout, columns.tolist(), criterion.__name__),
        held_out=held_out,
        held_out_batch=BATCH,
        checkpoint=checkpoint,
        report=report,
    )
    return replace(prompt, vectors=vectors.detach()), result


def precision(backbone: Backbone, prompt: SoftPrompt, subjects: Subjects, columns: Tensor) -> float:
    """Return P@1: the share of subjects whose best column is right."""
    right = 0
    with torch.inference_mode():
        for start in range(0, len(subjects), BATCH):
            part = subjects[start : start + BATCH]
            best = mask_logits(backbone, prompt, [subject for subject, _ in part], columns).argmax(-1).tolist()
            right += sum(answer in gold for answer, (_, gold) in zip(best, part, strict=True))
    return right / len(subjects)
