"""Trees of options: the log-probability that a prompt goes on with each of many, read together.

The options of a prompt are a tree of tokens: what several begin with is read once, and the last token of an option is
never read, since its probability stands where the token before it ends. The trees of all prompts hang on the key/value
cache of the beginning that the prompts share, and only places where an option goes on are compared with the vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from transformers import DynamicCache, PreTrainedModel

from lmkbc.models.causal.options import Option
from lmkbc.models.causal.prefixes import portions
from lmkbc.models.causal.trees import COLUMNS, Tree, beginning


def log_probabilities(
    model: PreTrainedModel, shared: int, prompts: Sequence[Sequence[Option]]
) -> Iterator[list[float]]:
    """Of each prompt's options, the natural logarithm of the probability that the prompt goes on with it.

    shared: how many tokens all options of all prompts begin with alike, less than any `first`.
    """
    with torch.inference_mode():
        cache = beginning(model, next(option for options in prompts for option in options).whole[:shared])
        for portion in portions(prompts, [_size(options, shared) for options in prompts], COLUMNS):
            yield from _read(model, cache, shared, portion)


def _size(options: Sequence[Option], shared: int) -> int:
    """How many tokens a prompt's tree has."""
    tree = Tree()
    for option in options:
        tree.path(0, option.whole[shared:-1])
    return len(tree.tokens)


def _read(
    model: PreTrainedModel, cache: DynamicCache, shared: int, prompts: Sequence[Sequence[Option]]
) -> list[list[float]]:
    tree = Tree()
    steps: list[tuple[int, int]] = []  # where an option's token is predicted, and the token
    for number, options in enumerate(prompts):
        for whole, first in options:
            path = tree.path(number, whole[shared:-1])
            steps += zip(path[first - shared - 1 :], whole[first:], strict=True)
    read = sorted({place for place, _ in steps})
    row_of = {place: row for row, place in enumerate(read)}
    logits = tree.read(model, cache, read)
    rows = torch.tensor([row_of[place] for place, _ in steps], device=logits.device)
    columns = torch.tensor([token for _, token in steps], device=logits.device)
    logs = iter((logits[rows, columns] - logits.logsumexp(-1)[rows]).tolist())
    return [[math.fsum(next(logs) for _ in whole[first:]) for whole, first in options] for options in prompts]
