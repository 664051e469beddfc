"""Soft prompts (OptiPrompt; Zhong, Friedman and Chen 2021): only the vectors between subject and mask are trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from lmkbc.models.masked.tensors import (
    BATCH,
)
from lmkbc.progress import Report, silent
from lmkbc.train.loop import Plan, Trained, train
from lmkbc.train.losses import Loss, mean_loss, soft_loss

if TYPE_CHECKING:
    from lmkbc.models.masked.backbone import Backbone
from lmkbc.models.masked.soft_prompts import SoftPrompt, mask_logits


def train_soft_prompt(
    backbone: Backbone,
    prompt: SoftPrompt,
    subjects: Sequence[str],
    golds: Sequence[Sequence[int]],
    columns: Tensor,
    plan: Plan,
    *,
    held_out: tuple[Sequence[str], Sequence[Sequence[int]]] = ((), ()),
    criterion: Loss = soft_loss,
    checkpoint: Path | None = None,
    report: Report = silent,
) -> tuple[SoftPrompt, Trained]:
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
        {"prompt": vectors},
        loss,
        len(subjects),
        plan,
        name="soft prompt",
        about=(prompt.layout, subjects, golds, columns.tolist(), criterion.__name__),
        held_out=held_out_loss if held_out[0] else None,
        checkpoint=checkpoint,
        report=report,
    )
    return replace(prompt, vectors=vectors.detach()), result


def precision(
    backbone: Backbone, prompt: SoftPrompt, subjects: Sequence[str], golds: Sequence[Sequence[int]], columns: Tensor
) -> float:
    """P@1: the share of subjects whose first column is right."""
    right = 0
    with torch.inference_mode():
        for start in range(0, len(subjects), BATCH):
            best = mask_logits(backbone, prompt, subjects[start : start + BATCH], columns).argmax(-1).tolist()
            right += sum(answer in gold for answer, gold in zip(best, golds[start : start + BATCH], strict=True))
    return right / len(subjects)
