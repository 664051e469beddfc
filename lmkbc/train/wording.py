"""Facts as token ids: a cloze with its subject and a mask, or with its object written out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

from lmkbc.errors import InputError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

WORDS, LETTERS = 16, 80
"""What is kept of a subject's name, so that the longest still leaves room for the cloze."""


def subject_of(name: str, tokenizer: PreTrainedTokenizerBase) -> str:
    """A name as it enters a prompt: one line, without the model's special tokens, cut when it is very long."""
    for special in tokenizer.all_special_tokens:
        name = name.replace(special, " ")
    return " ".join(name.split()[:WORDS])[:LETTERS]


def masked(tokenizer: PreTrainedTokenizerBase, clozes: Sequence[str], subjects: Sequence[str]) -> list[list[int]]:
    """Token ids of n clozes with one mask each; special tokens included."""
    texts = [
        cloze.format(subject=subject_of(subject, tokenizer), mask=tokenizer.mask_token)
        for cloze, subject in zip(clozes, subjects, strict=True)
    ]
    found: list[list[int]] = tokenizer(texts)["input_ids"]
    for text, ids in zip(texts, found, strict=True):
        if ids.count(mask_id(tokenizer)) != 1:
            raise InputError(f"{text!r} does not hold exactly one mask: mend its cloze")
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


def soft_loss(logits: Tensor, golds: Sequence[Sequence[int]]) -> Tensor:
    """Cross-entropy of logits (b, n) with the uniform distribution over each row's gold columns."""
    rows = [row for row, gold in enumerate(golds) for _ in gold]
    columns = [column for gold in golds for column in gold]
    weights = torch.tensor([1 / len(gold) for gold in golds for _ in gold], device=logits.device)
    return -(torch.log_softmax(logits.float(), -1)[rows, columns] * weights).sum() / len(golds)
