"""Training of masked LMs on clozes: of all weights, only of the prompt's vectors, or a search for its tokens.

OptiPrompt (Zhong, Friedman and Chen 2021): section 3 of the paper has all weights (also Yang et al. 2023), and soft
prompts, which are the vectors between subject and mask. Task-specific masked-LM training is on verbalised triples (Li
T. et al., LM-KBC 2022, section 1.2 of their code).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from lmkbc.errors import InputError
from lmkbc.masked.backbone import Backbone, subject_of
from lmkbc.masked.forward import BATCH, word_vectors
from lmkbc.masked.soft_prompts import SoftPrompt
from lmkbc.progress import Report, silent
from lmkbc.train.loop import Trained, mean, train
from lmkbc.train.prompt_vectors import at_masks, mask_logits, padded, random_prompt
from lmkbc.train.training import Masking, TrainingPlan
from lmkbc.types import Fact

Prompts = Sequence[tuple[Sequence[int], Sequence[int]]]
"""For each prompt: its token ids, and the right columns."""
Subjects = Sequence[tuple[str, Sequence[int]]]
"""For each prompt: its subject, and the right columns."""
Golds = Sequence[Sequence[int]]
"""For each row, the right columns."""
Loss = Callable[[Tensor, Golds], Tensor]
RIVALS, STEEPNESS = 50, 5.0
"""Settings of the ranking loss: number of best columns to compare with, and sigma (Biswas et al. 2023)."""
CANDIDATES, FACTS = 10, 56
"""Tokens to try and facts to draw per step of a search for tokens, as in the authors' command for facts."""


def soft_loss(logits: Tensor, golds: Golds) -> Tensor:
    """Return the cross-entropy of logits (b, n) with the uniform distribution over each row's gold columns."""
    rows = [row for row, gold in enumerate(golds) for _ in gold]
    columns = [column for gold in golds for column in gold]
    weights = torch.tensor([1 / len(gold) for gold in golds for _ in gold], device=logits.device)
    return -(torch.log_softmax(logits.float(), -1)[rows, columns] * weights).sum() / len(golds)


def rank_loss(logits: Tensor, golds: Golds) -> Tensor:
    """Return a ranking loss of logits (b, n): softplus of sigma times the gap of each wrong and right column.

    The weight of a pair is |1/rank - 1/rank|, so that the top counts most. In Biswas et al. 2023, scores are the
    exponential of distances; here they are the softmax.
    """
    shares = logits.float().softmax(-1)
    ranks = (shares.argsort(-1, descending=True).argsort(-1) + 1).float()
    total = shares.new_zeros(())
    for share, rank, gold in zip(shares, ranks, golds, strict=True):
        wrong = rank <= RIVALS
        wrong[list(gold)] = False
        right = list(gold)
        weights = (1 / rank[right, None] - 1 / rank[None, wrong]).abs()
        gaps = share[right, None] - share[None, wrong]
        total = total + (weights * nn.functional.softplus(-STEEPNESS * gaps)).sum() / len(right)
    return total / len(golds)


LOSSES: dict[str, Loss] = {"likelihood": soft_loss, "ranking": rank_loss}


def cloze_logits(backbone: Backbone, prompts: Sequence[Sequence[int]], columns: Tensor) -> Tensor:
    """Return the logits at the only mask of each prompt of token ids, for the given columns, (b, v)."""
    ids, keep = padded(prompts, cast(int, backbone.tokenizer.pad_token_id or 0), backbone.device)
    return at_masks(backbone.model, ids == backbone.mask_id, columns, input_ids=ids, attention_mask=keep)


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


IGNORED = -100
RANDOM_SHARE = 0.15
MOST_OBJECTS = 5
"""Most objects of one subject to train on, as in the authors' code."""


@dataclass(frozen=True, slots=True)
class _MaskedText:
    """Token ids with masks, and labels: the original token of each mask, -100 elsewhere."""

    ids: tuple[int, ...]
    labels: tuple[int, ...]


def verbalised(
    facts: Sequence[Fact | str], backbone: Backbone, masking: Masking, seed: int = 0
) -> Iterator[_MaskedText]:
    """Yield every fact in its first cloze with at most five of its objects, masked by the policy.

    A string is a sentence, which is masked at random; InputError for another policy. A text longer than the model's
    input is cut at its end.
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
) -> Iterator[_MaskedText]:
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
        yield _MaskedText(tuple(mask if at in chosen else token for at, token in enumerate(ids)), tuple(labels))


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

    def loss(of: Sequence[_MaskedText]) -> torch.Tensor:
        ids, keep = padded([row.ids for row in of], fill, backbone.device)
        labels, _ = padded([row.labels for row in of], IGNORED, backbone.device)
        hidden = labels != IGNORED  # other tokens need no logits, which are most of a small model's work
        logits = at_masks(model, hidden, input_ids=ids, attention_mask=keep)
        return nn.functional.cross_entropy(logits.float(), labels[hidden])

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


def search_prompt(
    backbone: Backbone,
    length: int,
    subjects: Subjects,
    columns: Tensor,
    *,
    iterations: int,
    seed: int,
    held_out: Subjects,
    report: Report = silent,
) -> tuple[SoftPrompt, list[int]]:
    """Return the best prompt of `length` tokens between subject and mask, and its tokens: AutoPrompt.

    Shin, Razeghi, Logan, Wallace and Singh, EMNLP 2020, section 2.2. If one token is replaced, its vector changes. To
    first order, the loss changes by the product of this change and the gradient with respect to the vector. The tokens
    with the lowest product are tried. iterations: number of steps; a step replaces at most one token.

    A step keeps the token with the lowest loss on other train facts. The best prompt has the highest P@1 on `held_out`,
    then the lowest loss. The tokens start as masks, which no prompt may keep, so the first steps replace each of them.
    """
    backbone.model.requires_grad_(False)
    table, draw = word_vectors(backbone.model).detach().float(), random.Random(seed)
    frame = random_prompt(backbone, length)
    allowed = torch.tensor(_allowed(backbone.tokenizer, columns), device=table.device)

    def made(tokens: Sequence[int]) -> SoftPrompt:
        return replace(frame, vectors=table[list(tokens)].clone())

    def loss(prompt: SoftPrompt, facts: Subjects) -> Tensor:
        logits = mask_logits(backbone, prompt, [subject for subject, _ in facts], columns)
        return soft_loss(logits, [gold for _, gold in facts])

    def drawn() -> Subjects:
        return draw.sample(list(subjects), min(FACTS, len(subjects)))

    def judged(prompt: SoftPrompt) -> tuple[float, float]:
        falling = mean(lambda part: loss(prompt, part), held_out, BATCH)
        return precision(backbone, prompt, held_out, columns), -falling

    tokens = [backbone.mask_id] * length
    best, best_score = tokens, (-1.0, 0.0)
    for step in range(max(iterations, length)):
        place = step if step < length else draw.randrange(length)
        prompt = made(tokens)
        prompt.vectors.requires_grad_(True)
        (gradient,) = torch.autograd.grad(loss(prompt, drawn()), prompt.vectors)
        lowest = (table[allowed] @ gradient[place]).topk(min(CANDIDATES, len(allowed)), largest=False)
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
        report("prompt search", step + 1, max(iterations, length))
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
