"""AutoPrompt: a prompt of vocabulary tokens, found by the gradient of the loss with respect to their vectors.

Shin, Razeghi, Logan, Wallace and Singh, EMNLP 2020, section 2.2. If one token is replaced, its vector changes. To first
order, the loss changes by the product of this change and the gradient. The tokens with the lowest product are tried.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from lmkbc.models.masked.backbone import Backbone
from lmkbc.models.masked.soft_prompts import SoftPrompt, mask_logits
from lmkbc.models.masked.tensors import BATCH, word_vectors
from lmkbc.progress import Report, silent
from lmkbc.train.clozes import Subjects, precision
from lmkbc.train.losses import mean, soft_loss


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerSearch:
    """Settings of a search. The defaults are those of the authors' command for facts.

    iterations: number of steps; a step replaces at most one token. candidates: tokens to try per step. batch: facts per
    step.
    """

    iterations: int = 1000
    candidates: int = 10
    batch: int = 56
    seed: int = 0


def search_prompt(
    backbone: Backbone,
    length: int,
    subjects: Subjects,
    columns: Tensor,
    how: TriggerSearch,
    *,
    held_out: Subjects,
    report: Report = silent,
) -> tuple[SoftPrompt, list[int]]:
    """Return the best prompt of `length` tokens between subject and mask, and its tokens.

    A step keeps the token with the lowest loss on other train facts. The best prompt has the highest P@1 on `held_out`,
    then the lowest loss. The tokens start as masks, which no prompt may keep, so the first steps replace each of them.
    """
    backbone.model.requires_grad_(False)
    table, draw = word_vectors(backbone.model).detach().float(), random.Random(how.seed)
    frame = SoftPrompt.random(backbone, length)
    allowed = torch.tensor(_allowed(backbone.tokenizer, columns), device=table.device)

    def made(tokens: Sequence[int]) -> SoftPrompt:
        return replace(frame, vectors=table[list(tokens)].clone())

    def loss(prompt: SoftPrompt, facts: Subjects) -> Tensor:
        logits = mask_logits(backbone, prompt, [subject for subject, _ in facts], columns)
        return soft_loss(logits, [gold for _, gold in facts])

    def drawn() -> Subjects:
        return draw.sample(list(subjects), min(how.batch, len(subjects)))

    def judged(prompt: SoftPrompt) -> tuple[float, float]:
        falling = mean(lambda part: loss(prompt, part), held_out, BATCH)
        return precision(backbone, prompt, held_out, columns), -falling

    tokens = [backbone.mask_id] * length
    best, best_score = tokens, (-1.0, 0.0)
    for step in range(max(how.iterations, length)):
        place = step if step < length else draw.randrange(length)
        prompt = made(tokens)
        prompt.vectors.requires_grad_(True)
        (gradient,) = torch.autograd.grad(loss(prompt, drawn()), prompt.vectors)
        lowest = (table[allowed] @ gradient[place]).topk(min(how.candidates, len(allowed)), largest=False)
        facts = drawn()
        trials = [[*tokens[:place], token, *tokens[place + 1 :]] for token in allowed[lowest.indices].tolist()]
        with torch.inference_mode():
            losses = [loss(made(trial), facts).item() for trial in trials]
            now = float("inf") if step < length else loss(made(tokens), facts).item()
        if min(losses) < now:
            tokens = trials[losses.index(min(losses))]
            score = judged(made(tokens)) if step >= length - 1 else best_score
            if score > best_score:
                best, best_score = tokens, score
        report("prompt search", step + 1, max(how.iterations, length))
    return made(best), best


def _allowed(tokenizer: PreTrainedTokenizerBase, columns: Tensor) -> list[int]:
    """Return the tokens that a prompt may hold: not special, not an answer, and without an initial capital (a name)."""
    left_out = {*tokenizer.all_special_ids, *columns.tolist()}
    pieces = {index: piece for piece, index in tokenizer.get_vocab().items() if index not in left_out}
    return [
        index
        for index, piece in sorted(pieces.items())
        if piece[:1] not in "[<" and not piece.lstrip("#Ġ▁")[:1].isupper()
    ]
