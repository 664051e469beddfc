"""Trees of tokens that hang on one beginning: all are read together, each token seeing what it follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from transformers import DynamicCache, PreTrainedModel

from lmkbc.models.causal.branches import forward

COLUMNS = 768
"""Tokens that are read at one time: more save little, and what they see of each other grows with the square."""


@dataclass(slots=True)
class Tree:
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

    def read(self, model: PreTrainedModel, cache: DynamicCache, keep: Sequence[int]) -> torch.Tensor:
        """Logits, (keep, vocabulary), behind some of the places. cache: of the beginning, which is left as it was."""
        before, device = cache.get_seq_length(), model.device
        logits = forward(
            model,
            torch.tensor([self.tokens], device=device),
            cache,
            attention_mask=self.mask(before, next(model.parameters()).dtype)[None, None].to(device),
            position_ids=torch.tensor([self.depths], device=device) + before,
            logits_to_keep=torch.tensor(keep, device=device),
        )[0]
        cache.crop(-len(self.tokens))
        return logits


def beginning(model: PreTrainedModel, tokens: Sequence[int]) -> DynamicCache:
    """The key/value cache of what comes before a tree."""
    cache = DynamicCache()
    if tokens:
        forward(model, torch.tensor([tokens], device=model.device), cache, logits_to_keep=1)
    return cache
