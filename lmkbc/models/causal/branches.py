"""The shared prefix: it is encoded once, and every prompt of its group branches from its key/value cache.

Two ways, with one interface. `Packed` holds the prefix and all branches in one row of the cache; an attention mask lets
a token see the prefix, its own prompt and its own answer, so that nothing is copied or padded, whatever the lengths.
`Batched` gives every prompt a row with a copy of the prefix's cache; its prompts have equal lengths, so that models
without attention masks or position ids (recurrent layers, ALiBi, sliding windows) are served too.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from typing import Any, Protocol, cast

import torch
from transformers import Cache, DynamicCache

from lmkbc.models.causal.prefixes import Tokens


class Branches(Protocol):
    """Prompts that continue one prefix, and their answers. Logits are of shape (positions, vocabulary)."""

    def read(self, suffixes: Sequence[Tokens], last: Sequence[int]) -> torch.Tensor:
        """Start afresh with the rest of some prompts; logits after the `last[i]` last tokens of each."""
        ...

    def fork(self, copies: int) -> None:
        """Let each prompt have so many answers: rows 0 to copies-1 are of the first prompt, and so on."""
        ...

    def step(self, kept: Sequence[int], tokens: Sequence[int]) -> torch.Tensor:
        """Go on with some of the rows only, one token each; logits after it."""
        ...


class Packed:
    """All branches in one row of the cache, kept apart by the attention mask."""

    def __init__(self, model: torch.nn.Module, prefix: Tokens) -> None:
        self._model, self._size = model, len(prefix)
        self._cache = DynamicCache()  # not of the model's config: no layer may forget what left its window
        self._device = next(model.parameters()).device
        self._owner = self._tensor([])
        if prefix:
            forward(model, self._tensor([prefix]), self._cache, logits_to_keep=1)
            self._owner = self._tensor([0] * len(prefix))

    def read(self, suffixes: Sequence[Tokens], last: Sequence[int]) -> torch.Tensor:
        """Start afresh with the rest of some prompts."""
        self._keep(self._owner == 0)
        self._prompt = list(range(1, len(suffixes) + 1))
        self._answer = list(self._prompt)
        self._next = [self._size + len(suffix) for suffix in suffixes]
        owners: list[int] = []
        tokens: list[int] = []
        positions: list[int] = []
        wanted: list[int] = []
        for owner, suffix, count in zip(self._prompt, suffixes, last, strict=True):
            owners += [owner] * len(suffix)
            tokens += suffix
            positions += range(self._size, self._size + len(suffix))
            wanted += range(len(tokens) - count, len(tokens))
        return self._extend(tokens, positions, owners, owners, wanted)

    def fork(self, copies: int) -> None:
        """Let each prompt have so many answers."""
        self._next = [position for position in self._next for _ in range(copies)]
        self._prompt = [prompt for prompt in self._prompt for _ in range(copies)]
        first = max(self._prompt) + 1
        self._answer = list(range(first, first + len(self._prompt)))

    def step(self, kept: Sequence[int], tokens: Sequence[int]) -> torch.Tensor:
        """Go on with some of the rows only."""
        self._prompt = [self._prompt[row] for row in kept]
        self._answer = [self._answer[row] for row in kept]
        positions = [self._next[row] for row in kept]
        self._next = [position + 1 for position in positions]
        seen = torch.isin(self._owner, self._tensor([0, *self._prompt, *self._answer]))
        if 2 * int(seen.sum()) < len(seen):
            self._keep(seen)
        return self._extend(tokens, positions, self._answer, self._prompt, range(len(tokens)))

    def _extend(
        self,
        tokens: Sequence[int],
        positions: Sequence[int],
        owners: Sequence[int],
        parents: Sequence[int],
        wanted: Sequence[int],
    ) -> torch.Tensor:
        """Add one column per token, which sees the prefix (0), its parent's and its owner's columns up to its own."""
        own, parent = self._tensor(owners)[:, None], self._tensor(parents)[:, None]
        before = len(self._owner)
        self._owner = torch.cat([self._owner, own[:, 0]])
        columns = torch.arange(len(self._owner), device=self._device)
        seen = (self._owner == 0) | (self._owner == own) | (self._owner == parent)
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

    def _keep(self, columns: torch.Tensor) -> None:
        if bool(columns.all()):
            return
        self._owner = self._owner[columns]
        layers: list[Any] = self._cache.layers
        for layer in layers:
            layer.keys, layer.values = layer.keys[:, :, columns], layer.values[:, :, columns]

    def _tensor(self, values: Sequence[Any]) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.long, device=self._device)


class Batched:
    """A row of the cache per branch. All suffixes of one reading have the same length."""

    def __init__(self, model: torch.nn.Module, prefix: Tokens) -> None:
        self._model = model
        self._device = next(model.parameters()).device
        self._prefix: Cache = DynamicCache(config=model.config)  # type: ignore[arg-type]
        if prefix:
            forward(model, torch.tensor([prefix], device=self._device), self._prefix, logits_to_keep=1)

    def read(self, suffixes: Sequence[Tokens], last: Sequence[int]) -> torch.Tensor:
        """Start afresh with the rest of some prompts."""
        self._cache = copy.deepcopy(self._prefix)
        self._select([0] * len(suffixes))
        logits = forward(self._model, torch.tensor(suffixes, device=self._device), self._cache)
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
