"""Shared prefixes: each is encoded once, and every prompt of its group branches from its key/value cache.

Two ways, with one interface. `Packed` holds prefixes and all branches in one row of the cache; an attention mask lets a
token see its own prefix, prompt and answer, so that nothing is copied or padded, whatever the lengths. `Batched` gives
every prompt a row with a copy of the one prefix's cache; its prompts have equal lengths, so that models without
attention masks or position ids (recurrent layers, ALiBi, sliding windows) are served too.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Protocol, cast

import torch
from transformers import Cache, DynamicCache

from lmkbc.models.causal.prefixes import Tokens, portions

PIECE = 512
"""Tokens of prompts that are read at one time: with more, what they do not see of each other takes longer than reading.
"""


class Branches(Protocol):
    """Prompts that continue given prefixes, and their answers. Logits are of shape (positions, vocabulary)."""

    def read(self, prompts: Sequence[Tokens], prefixes: Sequence[int], last: Sequence[int]) -> torch.Tensor:
        """Start afresh with some prompts, each with the number of its prefix; logits after their `last[i]` last tokens.

        Only what follows the prefix is read, so at least `last[i]` tokens do.
        """
        ...

    def fork(self, copies: int) -> None:
        """Let each prompt have so many answers: rows 0 to copies-1 are of the first prompt, and so on."""
        ...

    def step(self, kept: Sequence[int], tokens: Sequence[int]) -> torch.Tensor:
        """Go on with some of the rows only, one token each; logits after it."""
        ...


class Packed:
    """All prefixes and branches in one row of the cache, kept apart by the attention mask.

    A column's owner is a prefix, by its number, or what comes after these: a prompt or an answer.
    """

    def __init__(self, model: torch.nn.Module, prefixes: Sequence[Tokens]) -> None:
        self._model, self._sizes = model, [len(prefix) for prefix in prefixes]
        self._device = next(model.parameters()).device
        self._owners = self._tensor([number for number, size in enumerate(self._sizes) for _ in range(size)])
        caches = []
        for prefix in filter(None, prefixes):
            caches.append(DynamicCache())  # not of the model's config: no layer may forget what left its window
            forward(model, self._tensor([prefix]), caches[-1], logits_to_keep=1)
        self._prefixes = _in_a_row([(cache, 0) for cache in caches])

    def read(self, prompts: Sequence[Tokens], prefixes: Sequence[int], last: Sequence[int]) -> torch.Tensor:
        """Start afresh with some prompts."""
        self._prefix = list(prefixes)
        self._prompt = list(range(len(self._sizes), len(self._sizes) + len(prompts)))
        self._answer = list(self._prompt)
        self._next = [len(prompt) for prompt in prompts]
        sizes = [len(prompt) - self._sizes[prefix] for prompt, prefix in zip(prompts, prefixes, strict=True)]
        parts, owners, logits = [(self._prefixes, 0)], [self._owners], list[torch.Tensor]()
        for piece in portions(range(len(prompts)), sizes, PIECE):
            self._cache, self._owner = _in_a_row([(self._prefixes, 0)]), self._owners
            rows = [row for row in piece for _ in range(sizes[row])]
            tokens = [token for row in piece for token in prompts[row][self._sizes[prefixes[row]] :]]
            positions = [at for row in piece for at in range(self._sizes[prefixes[row]], len(prompts[row]))]
            ends = accumulate(sizes[row] for row in piece)
            wanted = [at for row, end in zip(piece, ends, strict=True) for at in range(end - last[row], end)]
            logits.append(self._extend(tokens, positions, rows, wanted))
            parts.append((self._cache, len(self._owners)))
            owners.append(self._owner[len(self._owners) :])
        if len(logits) > 1:
            self._cache, self._owner = _in_a_row(parts), torch.cat(owners)
        return torch.cat(logits)

    def fork(self, copies: int) -> None:
        """Let each prompt have so many answers."""
        self._next, self._prefix, self._prompt = (
            [value for value in values for _ in range(copies)] for values in (self._next, self._prefix, self._prompt)
        )
        first = max(self._prompt) + 1
        self._answer = list(range(first, first + len(self._prompt)))

    def step(self, kept: Sequence[int], tokens: Sequence[int]) -> torch.Tensor:
        """Go on with some of the rows only."""
        self._prefix, self._prompt, self._answer, positions = (
            [values[row] for row in kept] for values in (self._prefix, self._prompt, self._answer, self._next)
        )
        self._next = [position + 1 for position in positions]
        seen = torch.isin(self._owner, self._tensor([*self._prefix, *self._prompt, *self._answer]))
        if 2 * int(seen.sum()) < len(seen):
            self._owner = self._owner[seen]
            layers: list[Any] = self._cache.layers
            for layer in layers:
                layer.keys, layer.values = layer.keys[:, :, seen], layer.values[:, :, seen]
        return self._extend(tokens, positions, range(len(tokens)), range(len(tokens)))

    def _extend(
        self, tokens: Sequence[int], positions: Sequence[int], rows: Sequence[int], wanted: Sequence[int]
    ) -> torch.Tensor:
        """Add one column per token, which sees its row's prefix, prompt and answer up to its own column."""
        of = self._tensor(rows)
        prefix, prompt, own = (self._tensor(ids)[of, None] for ids in (self._prefix, self._prompt, self._answer))
        before = len(self._owner)
        self._owner = torch.cat([self._owner, own[:, 0]])
        columns = torch.arange(len(self._owner), device=self._device)
        seen = (self._owner == prefix) | (self._owner == prompt) | (self._owner == own)
        seen &= columns <= columns[before:, None]
        dtype = next(self._model.parameters()).dtype
        mask = torch.zeros(seen.shape, dtype=dtype, device=self._device)
        mask.masked_fill_(~seen, torch.finfo(dtype).min)
        return forward(
            self._model,
            self._tensor([tokens]),
            self._cache,
            attention_mask=mask[None, None],
            position_ids=self._tensor([positions]),
            logits_to_keep=self._tensor(wanted),
        )[0]

    def _tensor(self, values: Sequence[Any]) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.long, device=self._device)


def _in_a_row(parts: Sequence[tuple[DynamicCache, int]]) -> DynamicCache:
    """A cache of the columns of some, of each from a given one on. They stay as they are."""
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
    """A row of the cache per branch. There is one prefix, and all prompts of one reading have the same length."""

    def __init__(self, model: torch.nn.Module, prefixes: Sequence[Tokens]) -> None:
        (prefix,) = prefixes
        self._model, self._size = model, len(prefix)
        self._device = next(model.parameters()).device
        self._prefix: Cache = DynamicCache(config=model.config)  # type: ignore[arg-type]
        if prefix:
            forward(model, torch.tensor([prefix], device=self._device), self._prefix, logits_to_keep=1)

    def read(self, prompts: Sequence[Tokens], prefixes: Sequence[int], last: Sequence[int]) -> torch.Tensor:
        """Start afresh with some prompts."""
        self._cache = copy.deepcopy(self._prefix)
        self._select(prefixes)
        rest = torch.tensor([prompt[self._size :] for prompt in prompts], device=self._device)
        logits = forward(self._model, rest, self._cache)
        return torch.cat([row[len(row) - count :] for row, count in zip(logits, last, strict=True)])

    def fork(self, copies: int) -> None:
        """Let each prompt have so many answers."""
        rows = self._rows
        self._select([row for row in range(rows) for _ in range(copies)])

    def step(self, kept: Sequence[int], tokens: Sequence[int]) -> torch.Tensor:
        """Go on with some of the rows only."""
        if len(kept) < self._rows:
            self._select(kept)
        return forward(self._model, torch.tensor(tokens, device=self._device)[:, None], self._cache)[:, -1]

    def _select(self, rows: Sequence[int]) -> None:
        self._rows = len(rows)
        if self._cache.get_seq_length():
            self._cache.reorder_cache(cast(torch.LongTensor, torch.tensor(rows, device=self._device)))


def forward(model: torch.nn.Module, tokens: torch.Tensor, cache: Cache, **more: Any) -> torch.Tensor:
    """Logits in float32. Only the positions in `logits_to_keep` where the model can leave out the rest."""
    known = inspect.signature(model.forward).parameters
    keep = more.pop("logits_to_keep", 0)
    place = "past_key_values" if "past_key_values" in known else "cache_params"
    if "logits_to_keep" in known:
        more["logits_to_keep"] = keep
    logits: torch.Tensor = model(tokens, use_cache=True, **{place: cache}, **more).logits
    if "logits_to_keep" not in known and not isinstance(keep, int):
        logits = logits[:, keep]
    return logits.float()
