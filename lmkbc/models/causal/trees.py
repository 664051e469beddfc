"""Trees of tokens that hang on one beginning: all are read together, each token seeing what it follows."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import torch
from transformers import DynamicCache, PreTrainedModel

from lmkbc.models.causal.branches import forward
from lmkbc.models.causal.prefixes import Group, Tokens, portions

COLUMNS = 768
"""Tokens that are read at one time: more save little, and what they see of each other grows with the square."""

CPU_COLUMNS = 160
"""The same on a CPU, which is as fast with few: progress is seen earlier, and passes side by side end together."""

KEPT = 8
"""Beginnings whose caches are kept, the latest."""


def columns(model: PreTrainedModel) -> int:
    """Return how many tokens are read at one time. What is read together does not depend on the number of cores."""
    return CPU_COLUMNS if model.device.type == "cpu" else COLUMNS


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

    def read(
        self, model: PreTrainedModel, cache: DynamicCache, keep: Sequence[int], layer: int | None = None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Return the logits behind some places, (keep, vocabulary), and the states of all, (tokens, d), if asked for.

        cache: of the beginning; it holds the tree afterwards. layer: behind which the states are read.
        """
        before, device = cache.get_seq_length(), model.device
        states: list[torch.Tensor] = []
        logits = forward(
            model,
            torch.tensor([self.tokens], device=device),
            cache,
            attention_mask=self.mask(before, next(model.parameters()).dtype)[None, None].to(device),
            position_ids=torch.tensor([self.depths], device=device) + before,
            logits_to_keep=torch.tensor(keep, device=device),
            **({} if layer is None else {"take_states": lambda hidden: states.append(hidden[layer][0])}),
        )[0]
        return logits, states[0] if states else None


def parts_of(
    model: PreTrainedModel, groups: Sequence[Group], size: Callable[[int, int], int]
) -> list[tuple[Group, list[int]]]:
    """Return the members of groups in parts that are read at one time, the first part of every group first.

    size: from a member and what its group shares to its own tokens. A first part reads what its group begins with.
    """
    parts = []
    for group in groups:
        sizes = [size(member, group.shared) for member in group.members]
        parts += [(number, group, part) for number, part in enumerate(portions(group.members, sizes, columns(model)))]
    return [(group, part) for _, group, part in sorted(parts, key=lambda one: one[0])]


class Beginnings:
    """The key/value caches of what prompts begin with, the latest few of them.

    A beginning is read as a whole and by itself, so that its numbers do not depend on what was read before it.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        self._model = model
        self._kept: OrderedDict[Tokens, _Beginning] = OrderedDict()
        self._lock = Lock()

    def reused(self, prompts: Sequence[Tokens], group: Group) -> Group:
        """Return a group of prompts that goes on from a kept beginning instead, where that leaves less to read."""
        tokens = prompts[group.members[0]][: group.shared]
        for kept in sorted(self._kept, key=len, reverse=True):
            more = len(group.members) * (group.shared - len(kept))
            if more < group.shared and kept == tokens[: len(kept)]:
                return Group(len(kept), group.members)
        return group

    def cache(self, tokens: Tokens) -> DynamicCache:
        """Return a cache of the beginning. What the caller adds to it changes no other."""
        with self._lock:
            one = self._kept.setdefault(tokens, _Beginning())
            self._kept.move_to_end(tokens)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        with one.lock:  # others that need it wait until it is read
            if not one.layers and tokens:
                cache = DynamicCache()
                forward(self._model, torch.tensor([tokens], device=self._model.device), cache, logits_to_keep=1)
                layers: list[Any] = cache.layers
                one.layers = [(layer.keys, layer.values) for layer in layers]
        copy = DynamicCache()
        for number, (keys, values) in enumerate(one.layers):
            copy.update(keys, values, number)
        return copy


@dataclass(slots=True)
class _Beginning:
    """A beginning's keys and values, layer by layer; none until it is read."""

    lock: Any = field(default_factory=Lock)
    layers: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=list)
