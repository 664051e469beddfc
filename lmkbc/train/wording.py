"""Facts as token ids: a cloze with its subject and a mask, or with its object written out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar, cast

import torch
from torch import Tensor, nn

from lmkbc.errors import InputError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from lmkbc.generate.masked.backbone import Backbone

Row = TypeVar("Row")
Golds = Sequence[Sequence[int]]
"""For each row, which of the columns are right."""
Loss = Callable[[Tensor, Golds], Tensor]
BATCH = 256
"""Rows that are asked at a time where nothing is learned."""
RIVALS, STEEPNESS = 50, 5.0
"""Of the ranking loss: how many of the best columns a right one is compared with, and sigma (Biswas et al. 2023)."""
WORDS, LETTERS = 16, 80
"""What is kept of a subject's name, so that the longest still leaves room for the cloze."""


def subject_of(name: str, tokenizer: PreTrainedTokenizerBase) -> str:
    """A name as it enters a prompt: one line, without the model's special tokens, cut when it is very long."""
    for special in tokenizer.all_special_tokens:
        name = name.replace(special, " ")
    return " ".join(name.split()[:WORDS])[:LETTERS]


def masked(backbone: Backbone, clozes: Sequence[str], subjects: Sequence[str]) -> list[list[int]]:
    """Token ids of n clozes with one mask each, special tokens included, as long as the model reads at most."""
    from lmkbc.generate.masked.clozes import Clozes

    ways = Clozes(backbone)
    found: list[list[int]] = [[]] * len(clozes)
    places = defaultdict[str, list[int]](list)
    for place, cloze in enumerate(clozes):
        places[cloze].append(place)
    for cloze, mine in places.items():
        names = [subject_of(subjects[place], backbone.tokenizer) for place in mine]
        for place, ids in zip(mine, ways.fill(cloze, names), strict=True):
            if ids.count(ways.mask_id) != 1:
                raise InputError(f"cloze {cloze!r} does not hold exactly one mask once tokenised: mend it")
            found[place] = ids
    return found


def mask_id(tokenizer: PreTrainedTokenizerBase) -> int:
    """The model's own mask token."""
    if not isinstance(tokenizer.mask_token_id, int):
        raise InputError("the tokenizer has no mask token: name a masked language model, such as BERT's")
    return tokenizer.mask_token_id


def word_vectors(model: PreTrainedModel) -> Tensor:
    """The input embeddings of the vocabulary, (v, h), themselves and no copy."""
    return cast(Tensor, model.get_input_embeddings().weight)


def at_masks(model: PreTrainedModel, masks: Tensor, columns: Tensor | None = None, **inputs: Tensor) -> Tensor:
    """Logits where masks, (b, t), is true, over some words, or all: (m, v). The output matrix does no more."""
    decoder = cast(nn.Linear, model.get_output_embeddings())  # type: ignore[no-untyped-call]
    chosen = slice(None) if columns is None else columns.to(masks.device)
    bias = None if decoder.bias is None else decoder.bias[chosen]

    def reduced(states: Tensor) -> Tensor:
        return nn.functional.linear(states[masks], decoder.weight[chosen], bias)

    decoder.forward = reduced  # type: ignore[method-assign, assignment]
    try:
        return cast(Tensor, model(**inputs).logits)
    finally:
        del decoder.forward


def padded(rows: Sequence[Sequence[int]], fill: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Rows as one tensor (b, t), and where they are no padding (b, t)."""
    width = max(map(len, rows))
    ids = torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows], device=device)
    keep = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows], device=device)
    return ids, keep


def mean_loss(logits: Callable[[Sequence[Row]], Tensor], rows: Sequence[Row], golds: Golds, loss: Loss) -> float:
    """The loss on rows of any number, in parts that fit into memory, without gradients."""
    total = 0.0
    with torch.inference_mode():
        for start in range(0, len(rows), BATCH):
            part, gold = rows[start : start + BATCH], golds[start : start + BATCH]
            total += float(loss(logits(part), gold)) * len(part)
    return total / len(rows)


def soft_loss(logits: Tensor, golds: Golds) -> Tensor:
    """Cross-entropy of logits (b, n) with the uniform distribution over each row's gold columns."""
    rows = [row for row, gold in enumerate(golds) for _ in gold]
    columns = [column for gold in golds for column in gold]
    weights = torch.tensor([1 / len(gold) for gold in golds for _ in gold], device=logits.device)
    return -(torch.log_softmax(logits.float(), -1)[rows, columns] * weights).sum() / len(golds)


def rank_loss(logits: Tensor, golds: Golds) -> Tensor:
    """How far wrong columns of logits (b, n) rank before right ones: each pair's softplus, sigma times their gap.

    A pair weighs |1/rank - 1/rank|, so that the top counts most (Biswas et al. 2023; their scores are the exponential
    of distances, here the softmax).
    """
    shares = logits.float().softmax(-1)
    ranks = (shares.argsort(-1, descending=True).argsort(-1) + 1).float()
    total = shares.new_zeros(())
    for share, rank, gold in zip(shares, ranks, golds, strict=True):
        wrong = rank <= RIVALS
        wrong[list(gold)] = False
        own = list(gold)
        weights = (1 / rank[own, None] - 1 / rank[None, wrong]).abs()
        gaps = share[own, None] - share[None, wrong]
        total = total + (weights * nn.functional.softplus(-STEEPNESS * gaps)).sum() / len(own)
    return total / len(golds)


LOSSES: dict[str, Loss] = {"likelihood": soft_loss, "ranking": rank_loss}
