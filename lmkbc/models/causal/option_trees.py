"""Trees of options: the log-probability that a prompt goes on with each of many, read together.

The options of a prompt are a tree of tokens: what several begin with is read once, and the last token of an option is
never read, since its probability stands where the token before it ends. The trees of all prompts hang on the key/value
cache of the beginning that the prompts share, and only places where an option goes on are compared with the vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from transformers import DynamicCache, PreTrainedModel

from lmkbc.models.causal.branches import forward
from lmkbc.models.causal.options import Option

COLUMNS = 768
"""Tokens that are read at one time: more save little, and what they see of each other grows with the square."""


@dataclass(slots=True)
class _Tree:
    """Tokens after a shared beginning: each one's parent, -1 for the beginning, and how many stand before it."""

    tokens: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    _places: dict[tuple[int, int, int], int] = field(default_factory=dict)

    def path(self, prompt: int, tokens: Sequence[int]) -> list[int]:
        """The places of some tokens of a prompt, each put where it is not yet; prompts share none."""
        parent, places = -1, []
        for depth, token in enumerate(tokens):
            place = self._places.setdefault((prompt, parent, token), len(self.tokens))
            if place == len(self.tokens):
                self.tokens.append(token)
                self.parents.append(parent)
                self.depths.append(depth)
            places.append(parent := place)
        return places

    def mask(self, before: int, dtype: torch.dtype) -> torch.Tensor:
        """What is added to attention, (tokens, before + tokens): each sees the beginning, what it follows, itself."""
        seen = torch.eye(len(self.tokens), dtype=torch.bool)
        for place, parent in enumerate(self.parents):  # a parent stands before its children
            if parent >= 0:
                seen[place] |= seen[parent]
        whole = torch.cat([torch.ones(len(self.tokens), before, dtype=torch.bool), seen], 1)
        return torch.zeros(whole.shape, dtype=dtype).masked_fill_(~whole, torch.finfo(dtype).min)


def log_probabilities(
    model: PreTrainedModel, shared: int, prompts: Sequence[Sequence[Option]]
) -> Iterator[list[float]]:
    """Of each prompt's options, the natural logarithm of the probability that the prompt goes on with it.

    shared: how many tokens all options of all prompts begin with alike, less than any `first`.
    """
    cache = DynamicCache()
    with torch.inference_mode():
        if shared:
            beginning = next(option for options in prompts for option in options).whole[:shared]
            forward(model, torch.tensor([beginning], device=model.device), cache, logits_to_keep=1)
        for portion in _portions(prompts, shared):
            yield from _read(model, cache, shared, portion)


def _portions(prompts: Sequence[Sequence[Option]], shared: int) -> Iterator[list[Sequence[Option]]]:
    portion: list[Sequence[Option]] = []
    size = 0
    for options in prompts:
        tree = _Tree()
        for option in options:
            tree.path(0, option.whole[shared:-1])
        if portion and size + len(tree.tokens) > COLUMNS:
            yield portion
            portion, size = [], 0
        portion.append(options)
        size += len(tree.tokens)
    if portion:
        yield portion


def _read(
    model: PreTrainedModel, cache: DynamicCache, shared: int, prompts: Sequence[Sequence[Option]]
) -> list[list[float]]:
    tree = _Tree()
    steps: list[tuple[int, int]] = []  # where an option's token is predicted, and the token
    for number, options in enumerate(prompts):
        for whole, first in options:
            path = tree.path(number, whole[shared:-1])
            steps += zip(path[first - shared - 1 :], whole[first:], strict=True)
    read = sorted({place for place, _ in steps})
    row_of = {place: row for row, place in enumerate(read)}
    dtype, device = next(model.parameters()).dtype, model.device
    logits = forward(
        model,
        torch.tensor([tree.tokens], device=device),
        cache,
        attention_mask=tree.mask(shared, dtype)[None, None].to(device),
        position_ids=torch.tensor([tree.depths], device=device) + shared,
        logits_to_keep=torch.tensor(read, device=device),
    )[0]
    cache.crop(-len(tree.tokens))
    rows = torch.tensor([row_of[place] for place, _ in steps], device=device)
    columns = torch.tensor([token for _, token in steps], device=device)
    logs = iter((logits[rows, columns] - logits.logsumexp(-1)[rows]).tolist())
    return [[math.fsum(next(logs) for _ in whole[first:]) for whole, first in options] for options in prompts]
