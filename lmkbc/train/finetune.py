"""Full fine-tuning: every weight learns to answer the relations' clozes (OptiPrompt, section 3; Yang et al. 2023)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from torch import Tensor

from lmkbc.models.masked.tensors import at_masks, mask_id, padded
from lmkbc.progress import Report, silent
from lmkbc.train.loop import Plan, Trained, train_model
from lmkbc.train.losses import mean_loss, soft_loss

if TYPE_CHECKING:
    from lmkbc.models.masked.backbone import Backbone


def mask_logits(backbone: Backbone, prompts: Sequence[Sequence[int]], columns: Tensor) -> Tensor:
    """Logits at the one mask of each prompt of token ids, over some words, (b, v)."""
    ids, keep = padded(prompts, cast(int, backbone.tokenizer.pad_token_id or 0), backbone.device)
    masks = ids == mask_id(backbone.tokenizer)
    return at_masks(backbone.model, masks, columns, input_ids=ids, attention_mask=keep)


def finetune(
    backbone: Backbone,
    prompts: Sequence[Sequence[int]],
    golds: Sequence[Sequence[int]],
    columns: Tensor,
    plan: Plan,
    *,
    held_out: tuple[Sequence[Sequence[int]], Sequence[Sequence[int]]] = ((), ()),
    checkpoint: Path | None = None,
    report: Report = silent,
) -> Trained:
    """Train all weights in place. golds: for each prompt, which of the columns are right."""

    def loss(numbers: Sequence[int]) -> Tensor:
        logits = mask_logits(backbone, [prompts[number] for number in numbers], columns)
        return soft_loss(logits, [golds[number] for number in numbers])

    def held_out_loss() -> float:
        return mean_loss(lambda part: mask_logits(backbone, part, columns), *held_out, soft_loss)

    return train_model(
        backbone.model,
        loss,
        len(prompts),
        plan,
        name="fine-tuning",
        about=(prompts, golds),
        held_out=held_out_loss if held_out[0] else None,
        checkpoint=checkpoint,
        report=report,
    )
