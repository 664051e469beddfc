"""Shared prefixes: each is encoded once, and all prompts of its group continue its key/value cache.

There are two ways with one interface. `Ragged` gives every prompt and answer a row of its own length, and holds a
prefix once for all rows that continue it. New prompts are read in one row, where an attention mask lets a token see its
own prefix and prompt.

`Batched` gives every prompt a row with a copy of one prefix's cache. Its prompts have equal lengths. It suits models
without attention masks or position ids (recurrent layers, ALiBi), models with an attention of their own, and models
whose window our mask cannot narrow.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby
from typing import Any, cast

import torch
from transformers import Cache, DynamicCache

from lmkbc.local.caches import PrefixCaches, RaggedCache, Span, continue_rows, forward, read_row
from lmkbc.models.hardware import capacity
from lmkbc.models.prefixes import Tokens, portions

SPARE = 32
"""Tokens for which rows get further room at a time."""


@dataclass(slots=True)
class _Row:
    """A prompt and its answer. slot: where its columns are. length: number of tokens after the prefix."""

    prefix: Tokens
    slot: int
    length: int


class Ragged:
    """Prompts and answers of any lengths, with a row each. Rows with one prefix share it.

    Prompts may be added at any time; those of one prefix must be adjacent.
    """

    def __init__(self, model: torch.nn.Module, prefix_caches: PrefixCaches) -> None:
        self._model, self._prefix_caches = model, prefix_caches
        self._device = next(model.parameters()).device
        self._piece = capacity(self._device).piece
        self._cache = RaggedCache()
        self._heads: dict[Tokens, DynamicCache] = {}
        self._rows: list[_Row] = []
        self._fresh = 0

    def read(self, prompts: Sequence[Tokens], prefixes: Sequence[Tokens]) -> torch.Tensor:
        """Add prompts, and return logits after each. Each is longer than its prefix."""
        used = dict.fromkeys([*(row.prefix for row in self._rows), *prefixes])
        self._heads = {prefix: self._heads.get(prefix) or self._prefix_caches.cache(prefix) for prefix in used}
        sizes = [len(prompt) - len(prefix) for prompt, prefix in zip(prompts, prefixes, strict=True)]
        before, self._fresh = len(self._rows), len(prompts)
        logits = []
        for piece in portions(range(len(prompts)), sizes, self._piece):
            cache, first, found = self._read([prompts[at] for at in piece], [prefixes[at] for at in piece])
            logits.append(found)
            if piece[0] == 0:
                self._cache.shape(cache)
                self._move(len(prompts), max([*sizes, *(row.length for row in self._rows)]))
            rows = [before + at for at in piece for _ in range(sizes[at])]
            places = [place for at in piece for place in range(sizes[at])]
            self._cache.fill(cache, first, self._tensor(rows), self._tensor(places))
        self._rows += [_Row(prefix, before + at, sizes[at]) for at, prefix in enumerate(prefixes)]
        return torch.cat(logits)

    def fork(self, copies: int) -> None:
        """Give each prompt that was just read `copies` answers, in adjacent rows."""
        if copies == 1:
            return
        first = len(self._rows) - self._fresh
        self._cache.repeat(first, copies)
        rows = [row for row in self._rows[first:] for _ in range(copies)]
        self._rows[first:] = [replace(row, slot=slot) for slot, row in enumerate(rows, first)]

    def step(self, kept: Sequence[int], tokens: Sequence[int]) -> torch.Tensor:
        """Continue some of the rows, with one token each, and return logits after it."""
        self._rows = [self._rows[row] for row in kept]
        longest = max(row.length for row in self._rows)
        if 2 * len(self._rows) < self._cache.slots or longest == self._cache.room:
            self._move(0, longest)
        lengths = self._tensor([row.length for row in self._rows])
        self._cache.prepare(self._tensor([row.slot for row in self._rows]), lengths, list(self._spans()))
        for row in self._rows:
            row.length += 1
        return continue_rows(self._model, self._cache, self._tensor(tokens))

    def _read(self, prompts: Sequence[Tokens], prefixes: Sequence[Tokens]) -> tuple[DynamicCache, int, torch.Tensor]:
        """Read prompts in one row; return its cache, the first column of the prompts, and the logits after each."""
        used = list(dict.fromkeys(prefixes))
        cache = _in_a_row([self._heads[prefix] for prefix in used])
        rests = [prompt[len(prefix) :] for prompt, prefix in zip(prompts, prefixes, strict=True)]
        owners = [number for number, prefix in enumerate(used) for _ in prefix]
        positions = [place for prefix in used for place in range(len(prefix))]
        first = len(owners)
        for number, (rest, prefix) in enumerate(zip(rests, prefixes, strict=True), len(used)):
            owners += [number] * len(rest)
            positions += range(len(prefix), len(prefix) + len(rest))
        owner, order = self._tensor(owners), torch.arange(len(owners), device=self._device)
        heads = self._tensor([used.index(prefix) for rest, prefix in zip(rests, prefixes, strict=True) for _ in rest])
        seen = (owner == heads[:, None]) | (owner == owner[first:, None])
        seen &= order <= order[first:, None]
        ends = [end - 1 for end in accumulate(map(len, rests))]
        tokens = [token for rest in rests for token in rest]
        logits, _ = read_row(self._model, cache, tokens, positions, seen, ends)
        return cache, first, logits

    def _spans(self) -> Iterator[Span]:
        """Yield the spans of rows that continue one prefix."""
        start = 0
        for prefix, rows in groupby(self._rows, lambda row: row.prefix):
            stop = start + len(list(rows))
            if prefix:
                yield start, stop, len(prefix), self._heads[prefix]
            start = stop

    def _move(self, more: int, longest: int) -> None:
        """Move the rows together, with room for `more` rows and some more tokens than the longest row has."""
        self._cache.move(self._tensor([row.slot for row in self._rows]), more, longest + SPARE)
        for slot, row in enumerate(self._rows):
            row.slot = slot

    def _tensor(self, values: Sequence[int]) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.long, device=self._device)


def _in_a_row(caches: Sequence[DynamicCache]) -> DynamicCache:
    """Return a cache with the columns of several caches, which do not change."""
    joined = DynamicCache()
    filled: list[Sequence[Any]] = [cache.layers for cache in caches if cache.layers]
    for number in range(len(filled[0]) if filled else 0):
        keys, values = (
            torch.cat([getattr(layers[number], name) for layers in filled], 2) for name in ("keys", "values")
        )
        joined.update(keys, values, number)
    return joined


class Batched:
    """Prompts of equal lengths that start with the same prefix, each with its own row and copy of the cache.

    New prompts replace the old ones.

    grows: whether the cache can be continued token by token; if not, there is no cache, and every step reads all
    tokens again.
    """

    def __init__(self, model: torch.nn.Module, prefix: Tokens, *, grows: bool = True) -> None:
        self._model, self._size = model, len(prefix)
        self._device = next(model.parameters()).device
        self._prefix: Cache | None = DynamicCache(config=model.config) if grows else None  # type: ignore[arg-type]
        if prefix:
            forward(model, torch.tensor([prefix], device=self._device), self._prefix, logits_to_keep=1)

    def read(
        self,
        prompts: Sequence[Tokens],
        prefixes: Sequence[Tokens],  # noqa: ARG002 -- all have the prefix in the cache
    ) -> torch.Tensor:
        """Replace the prompts, and return logits after each."""
        return self.read_all(prompts, keep=1)[0][:, -1]

    def read_all(
        self, prompts: Sequence[Tokens], layer: int | None = None, keep: int = 0
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Replace the prompts; return the logits, and the hidden states of all tokens after the prefix.

        layer: layer of the states; None for no states. keep: number of last tokens whose logits are needed; 0 for all.
        """
        self._cache = copy.deepcopy(self._prefix)
        self._tokens = torch.tensor([prompt[self._size :] for prompt in prompts], device=self._device)
        if self._cache is not None:
            self._cache.reorder_cache(cast(torch.LongTensor, torch.zeros_like(self._tokens[:, 0])))
        return forward(self._model, self._tokens, self._cache, layer=layer, logits_to_keep=keep)

    def fork(self, copies: int) -> None:
        """Give each prompt `copies` answers."""
        self._select([row for row in range(len(self._tokens)) for _ in range(copies)])

    def step(self, kept: Sequence[int], tokens: Sequence[int]) -> torch.Tensor:
        """Continue some of the rows, with one token each, and return logits after it."""
        if len(kept) < len(self._tokens):
            self._select(kept)
        new = torch.tensor(tokens, device=self._device)[:, None]
        if self._cache is None:
            new = self._tokens = torch.cat([self._tokens, new], 1)
        return forward(self._model, new, self._cache, logits_to_keep=1)[0][:, -1]

    def _select(self, rows: Sequence[int]) -> None:
        places = torch.tensor(rows, dtype=torch.long, device=self._device)
        self._tokens = self._tokens[places]
        if self._cache is not None:
            self._cache.reorder_cache(cast(torch.LongTensor, places))


Branches = Ragged | Batched
"""Prompts that continue prefixes, and their answers. Logits have shape (rows, vocabulary)."""
