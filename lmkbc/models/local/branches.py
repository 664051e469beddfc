"""Shared prefixes: each is encoded once, and all prompts of its group continue its key/value cache.

There are two ways with one interface. `Packed` holds prefixes and branches in one row of the cache. An attention mask
lets a token see its own prefix, prompt and answer. Nothing is copied or padded, whatever the lengths.

`Batched` gives every prompt a row with a copy of one prefix's cache. Its prompts have equal lengths. It suits models
without attention masks or position ids (recurrent layers, ALiBi), and models whose window our mask cannot narrow.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import accumulate, count, islice
from typing import Any, cast

import torch
from transformers import Cache, DynamicCache

from lmkbc.models.local.caches import PrefixCaches, forward, read_row
from lmkbc.models.local.prefixes import Tokens, portions

PIECE = 512
"""Maximum tokens of prompts that are read at once; with more, masked pairs of tokens cost more than reading."""


class Packed:
    """Prefixes and branches in one row of the cache, separated by the attention mask.

    Prompts may be added at any time; those of one prefix are adjacent. The owner of a column is a number, of a prefix,
    a prompt or an answer. It is stored with the column's position.
    """

    def __init__(self, model: torch.nn.Module, prefix_caches: PrefixCaches) -> None:
        self._model, self._prefix_caches = model, prefix_caches
        self._device = next(model.parameters()).device
        self._cache, self._columns = DynamicCache(), self._tensor([[], []])
        self._numbers = count()
        self._heads: dict[Tokens, tuple[int, DynamicCache]] = {}
        self._prefix: list[int] = []
        self._prompt: list[int] = []
        self._answer: list[int] = []
        self._next: list[int] = []

    def read(self, prompts: Sequence[Tokens], prefixes: Sequence[Tokens], last: Sequence[int]) -> torch.Tensor:
        """Add prompts, and return logits after the last `last[i]` tokens of each; these follow the prompt's prefix."""
        self._heads = {
            prefix: self._heads.get(prefix) or (next(self._numbers), self._prefix_caches.cache(prefix))
            for prefix in dict.fromkeys(prefixes)
        }
        there = set(self._columns[0].tolist())
        parts, columns = [(self._cache, 0)], [self._columns]
        for prefix, (number, cache) in self._heads.items():
            if number not in there:
                parts.append((cache, 0))
                columns.append(self._head(prefix))
        before, self._fresh = len(self._next), len(prompts)
        self._prefix += [self._heads[prefix][0] for prefix in prefixes]
        self._prompt += islice(self._numbers, len(prompts))
        self._answer += self._prompt[before:]
        self._next += map(len, prompts)
        sizes = [len(prompt) - len(prefix) for prompt, prefix in zip(prompts, prefixes, strict=True)]
        logits = []
        for piece in portions(range(len(prompts)), sizes, PIECE):
            used = dict.fromkeys(prefixes[place] for place in piece)
            cache = _in_a_row([(self._heads[prefix][1], 0) for prefix in used])
            head = torch.cat([self._head(prefix) for prefix in used], 1)
            rows = [before + place for place in piece for _ in range(sizes[place])]
            tokens = [token for place in piece for token in prompts[place][len(prefixes[place]) :]]
            positions = [at for place in piece for at in range(len(prefixes[place]), len(prompts[place]))]
            ends = accumulate(sizes[place] for place in piece)
            wanted = [at for place, end in zip(piece, ends, strict=True) for at in range(end - last[place], end)]
            found, made = self._extend(cache, head, tokens, positions, rows, wanted)
            logits.append(found)
            parts.append((cache, head.shape[1]))
            columns.append(made[:, head.shape[1] :])
        self._cache, self._columns = _in_a_row(parts), torch.cat(columns, 1)
        return torch.cat(logits)

    def fork(self, copies: int) -> None:
        """Give each prompt that was just read `copies` answers, in adjacent rows."""
        if copies == 1:
            return
        first = len(self._next) - self._fresh
        for values in (self._next, self._prefix, self._prompt, self._answer):
            values[first:] = [value for value in values[first:] for _ in range(copies)]
        self._answer[first:] = islice(self._numbers, len(self._answer) - first)

    def step(self, kept: Sequence[int], tokens: Sequence[int]) -> torch.Tensor:
        """Continue some of the rows, with one token each, and return logits after it."""
        self._prefix, self._prompt, self._answer, positions = (
            [values[row] for row in kept] for values in (self._prefix, self._prompt, self._answer, self._next)
        )
        self._next = [position + 1 for position in positions]
        seen = torch.isin(self._columns[0], self._tensor([*self._prefix, *self._prompt, *self._answer]))
        if 2 * int(seen.sum()) < len(seen):
            self._columns = self._columns[:, seen]
            layers: list[Any] = self._cache.layers
            for layer in layers:
                layer.keys, layer.values = layer.keys[:, :, seen], layer.values[:, :, seen]
        rows = range(len(tokens))
        logits, self._columns = self._extend(self._cache, self._columns, tokens, positions, rows, rows)
        return logits

    def _extend(
        self,
        cache: DynamicCache,
        columns: torch.Tensor,
        tokens: Sequence[int],
        positions: Sequence[int],
        rows: Sequence[int],
        wanted: Sequence[int],
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Add a column per token, which sees its row's prefix, prompt and answer; return logits and columns."""
        of = self._tensor(rows)
        prefix, prompt, answer = (self._tensor(ids)[of, None] for ids in (self._prefix, self._prompt, self._answer))
        before = columns.shape[1]
        columns = torch.cat([columns, torch.stack([answer[:, 0], self._tensor(positions)])], 1)
        owner, order = columns[0], torch.arange(columns.shape[1], device=self._device)
        seen = (owner == prefix) | (owner == prompt) | (owner == answer)
        seen &= order <= order[before:, None]
        return read_row(self._model, cache, tokens, columns[1], seen, wanted)[0], columns

    def _head(self, prefix: Tokens) -> torch.Tensor:
        """Return the owners and positions of a prefix's columns, (2, columns)."""
        return self._tensor([[self._heads[prefix][0]] * len(prefix), range(len(prefix))])

    def _tensor(self, values: Sequence[Any]) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.long, device=self._device)


def _in_a_row(parts: Sequence[tuple[DynamicCache, int]]) -> DynamicCache:
    """Return a cache with the columns of several caches, each from a given column on. These do not change."""
    joined = DynamicCache()
    filled: list[tuple[Sequence[Any], int]] = [(cache.layers, first) for cache, first in parts if cache.layers]
    for number in range(len(filled[0][0]) if filled else 0):
        keys, values = (
            torch.cat([getattr(layers[number], name)[:, :, first:] for layers, first in filled], 2)
            for name in ("keys", "values")
        )
        joined.update(keys, values, number)
    return joined


class Batched:
    """One row of the cache per branch, all with one prefix.

    New prompts replace the old ones; their lengths are equal.
    """

    def __init__(self, model: torch.nn.Module, prefix: Tokens) -> None:
        self._model, self._size = model, len(prefix)
        self._device = next(model.parameters()).device
        self._prefix: Cache = DynamicCache(config=model.config)  # type: ignore[arg-type]
        if prefix:
            forward(model, torch.tensor([prefix], device=self._device), self._prefix, logits_to_keep=1)

    def read(
        self,
        prompts: Sequence[Tokens],
        prefixes: Sequence[Tokens],  # noqa: ARG002 -- all have the prefix in the cache
        last: Sequence[int],
    ) -> torch.Tensor:
        """Replace the prompts, and return logits after the last `last[i]` tokens of each."""
        logits, _ = self.read_all(prompts, keep=max(last))
        return torch.cat([row[len(row) - count :] for row, count in zip(logits, last, strict=True)])

    def read_all(
        self, prompts: Sequence[Tokens], layer: int | None = None, keep: int = 0
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Replace the prompts; return the logits, and the hidden states of all tokens after the prefix.

        layer: layer of the states; None for no states. keep: number of last tokens whose logits are needed; 0 for all.
        """
        self._cache = copy.deepcopy(self._prefix)
        self._select([0] * len(prompts))
        rest = torch.tensor([prompt[self._size :] for prompt in prompts], device=self._device)
        return forward(self._model, rest, self._cache, layer=layer, logits_to_keep=keep)

    def fork(self, copies: int) -> None:
        """Give each prompt `copies` answers."""
        rows = self._rows
        self._select([row for row in range(rows) for _ in range(copies)])

    def step(self, kept: Sequence[int], tokens: Sequence[int]) -> torch.Tensor:
        """Continue some of the rows, with one token each, and return logits after it."""
        if len(kept) < self._rows:
            self._select(kept)
        return forward(self._model, torch.tensor(tokens, device=self._device)[:, None], self._cache)[0][:, -1]

    def _select(self, rows: Sequence[int]) -> None:
        self._rows = len(rows)
        if self._cache.get_seq_length():
            self._cache.reorder_cache(cast(torch.LongTensor, torch.tensor(rows, device=self._device)))


Branches = Packed | Batched
"""Prompts that continue prefixes, and their answers. Logits have shape (positions, vocabulary)."""
