"""Task-specific masked-LM training on verbalised triples (Li T. et al., LM-KBC 2022, section 1.2 of their code)."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import torch

from lmkbc.errors import InputError
from lmkbc.models.masked.layout import subject_of
from lmkbc.models.masked.tensors import mask_id, padded
from lmkbc.progress import Report, silent
from lmkbc.train.loop import Plan, Trained, train_model
from lmkbc.train.losses import mean
from lmkbc.types import Fact

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from lmkbc.models.masked.backbone import Backbone

IGNORED = -100
RANDOM_SHARE = 0.15
MOST_OBJECTS = 5
"""Objects of one subject that are trained on, as in the authors' code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Masking:
    """What is masked. policy: the "object", or 15 % of all tokens at "random".

    window: tokens around the object that are masked too. apart: one example per masked token with the rest of the
    object in sight, as the authors' code has it, in place of one example with all of them masked. nothing: the word
    for no object; where it is empty, facts without an object are passed over.
    """

    policy: Literal["object", "random"] = "object"
    window: int = 0
    apart: bool = False
    nothing: str = ""

    @classmethod
    def of(cls, text: str, *, apart: bool = False, nothing: str = "") -> Masking:
        """From "object", "object+1" or "random". InputError for anything else."""
        policy, _, window = text.partition("+")
        if policy == "random" and not window:
            return cls(policy="random", apart=apart, nothing=nothing)
        if policy == "object" and (not window or window.isdigit()):
            return cls(window=int(window or 0), apart=apart, nothing=nothing)
        raise InputError(f"the mask policy is {text!r}: use object, object+N (N tokens around it) or random")


@dataclass(frozen=True, slots=True)
class Masked:
    """Token ids with masks, and what stands behind each mask, -100 where there is none."""

    ids: tuple[int, ...]
    labels: tuple[int, ...]


def verbalised(facts: Sequence[Fact | str], backbone: Backbone, masking: Masking, seed: int = 0) -> Iterator[Masked]:
    """Every fact in its first cloze, with at most five of its objects written out, masked by the policy.

    A string is a sentence, and masked at random: InputError for another policy. What is longer than the model reads
    loses its end.
    """
    draw, tokenizer, longest = random.Random(seed), backbone.tokenizer, backbone.longest
    for fact in facts:
        if isinstance(fact, str) and masking.policy != "random":
            raise InputError("sentences have no object to mask: use --mask random")
        for text, span in (
            [(fact, (0, 0))] if isinstance(fact, str) else _worded(fact, tokenizer, masking.nothing, draw)
        ):
            encoded = tokenizer(text, return_offsets_mapping=True, return_special_tokens_mask=True, verbose=False)
            if len(encoded["input_ids"]) > longest:
                encoded = {key: [*each[: longest - 1], each[-1]] for key, each in encoded.items()}
            yield from _masked(encoded, span, masking, mask_id(tokenizer), draw)


def _worded(
    fact: Fact, tokenizer: PreTrainedTokenizerBase, nothing: str, draw: random.Random
) -> Iterator[tuple[str, tuple[int, int]]]:
    """Sentences that tell the fact, one per object, each with where the object stands."""
    objects = list(fact.objects) or [nothing] * bool(nothing)
    for name in draw.sample(objects, min(len(objects), MOST_OBJECTS)):
        before, after = fact.clozes[0].split("{mask}")
        start = before.replace("{subject}", subject_of(fact.subject, tokenizer))
        rest = after.replace("{subject}", subject_of(fact.subject, tokenizer))
        shown = subject_of(name, tokenizer)
        yield start + shown + rest, (len(start), len(start) + len(shown))


def _masked(
    encoded: dict[str, list[int]], span: tuple[int, int], masking: Masking, mask: int, draw: random.Random
) -> Iterator[Masked]:
    ids = encoded["input_ids"]
    words = [at for at, special in enumerate(encoded["special_tokens_mask"]) if not special and ids[at] != mask]
    if not words:
        return
    if masking.policy == "random":
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
        yield Masked(tuple(mask if at in chosen else token for at, token in enumerate(ids)), tuple(labels))


def train_mlm(
    backbone: Backbone,
    facts: Sequence[Fact | str],
    held_out: Sequence[Fact | str],
    plan: Plan,
    masking: Masking,
    *,
    checkpoint: Path | None = None,
    report: Report = silent,
) -> Trained:
    """Train all weights of the backbone, in place, on facts or sentences; stop early by the loss on others."""
    model, fill = backbone.model, cast(int, backbone.tokenizer.pad_token_id or 0)
    rows, others = (list(verbalised(part, backbone, masking, plan.seed)) for part in (facts, held_out))

    def loss(of: Sequence[Masked]) -> torch.Tensor:
        ids, keep = padded([row.ids for row in of], fill, backbone.device)
        labels, _ = padded([row.labels for row in of], IGNORED, backbone.device)
        return cast(torch.Tensor, model(input_ids=ids, attention_mask=keep, labels=labels).loss)

    return train_model(
        model,
        lambda numbers: loss([rows[number] for number in numbers]),
        len(rows),
        plan,
        name="masked LM",
        about=rows,
        held_out=(lambda: mean(loss, others, plan.batch)) if others else None,
        checkpoint=checkpoint,
        report=report,
    )
