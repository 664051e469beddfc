"""A template as token ids with places in it, and how a subject's name enters it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Layout = tuple[int, ...]
"""A template as token ids, with SUBJECT, MASK and SOFT where those stand."""
SUBJECT, MASK, SOFT = -1, -2, -3
"""Places in a layout; any other number is a token id."""
WORDS, LETTERS = 16, 80
"""What is kept of a subject's name, so that the longest still leaves room for the cloze."""


def subject_of(name: str, tokenizer: PreTrainedTokenizerBase) -> str:
    """Return a name as it enters a prompt: one line, without the model's special tokens, cut when it is very long."""
    for special in tokenizer.all_special_tokens:
        name = name.replace(special, " ")
    return " ".join(name.split()[:WORDS])[:LETTERS]


def subject_pieces(prompt: Layout, subjects: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> list[list[int]]:
    """Return the tokens of each subject as they stand in a prompt: within a text, behind a space, or first."""
    first = set(prompt[: prompt.index(SUBJECT)]) <= set(tokenizer.all_special_ids)
    space = "" if first else " "
    names = [space + subject_of(subject, tokenizer) for subject in subjects]
    return list(tokenizer(names, add_special_tokens=False, verbose=False)["input_ids"])
