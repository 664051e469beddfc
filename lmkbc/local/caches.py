"""Caches of prompts' prefixes, forward passes that continue one, and the attention of answers that share one.

A prefix is held once, and read by all rows that continue it. A model uses this attention through transformers'
interface of attention functions, while its config names it.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, cast

import torch
from transformers import AttentionInterface, Cache, DynamicCache

from lmkbc.models.prefixes import Group, Tokens

NAME = "lmkbc-shared-prefix"
"""Name of the implementation in transformers."""

Span = tuple[int, int, int, DynamicCache]
"""Adjacent rows, from the first number to before the second, that continue one prefix, and its length and cache."""


class RaggedCache:
    """Key/value cache of answers of any lengths that share prefixes.

    It holds the tokens after the prefixes, with a row per answer, padded at the end. A row has a slot. When it leaves,
    its slot stays until the others are moved together. The model gets it as the cache of a forward pass of one token
    per row, and as the argument of the attention function.

    keys, values: a tensor per layer, (slots, heads, room, d).
    """

    def __init__(self) -> None:
        self.keys: list[torch.Tensor] = []
        self.values: list[torch.Tensor] = []
        self._slots = self._lengths = torch.zeros(0, dtype=torch.long)
        self._spans: Sequence[Span] = ()
        self._used = self._before = 0

    @property
    def slots(self) -> int:
        """Return the number of slots."""
        return len(self.keys[0]) if self.keys else 0

    @property
    def room(self) -> int:
        """Return the number of tokens that a row can hold."""
        return self.keys[0].shape[2] if self.keys else 0

    def shape(self, like: DynamicCache) -> None:
        """Set the sizes of heads from a cache, if they are not known yet."""
        if not self.keys:
            layers: list[Any] = like.layers
            self.keys = [layer.keys[:0, :, :0] for layer in layers]
            self.values = [layer.values[:0, :, :0] for layer in layers]

    def move(self, slots: torch.Tensor, more: int, room: int) -> None:
        """Keep the rows in `slots`, in this order, and add `more` empty rows; each row gets the given room."""
        for tensors in (self.keys, self.values):
            for layer, old in enumerate(tensors):
                new = old.new_zeros((len(slots) + more, old.shape[1], room, old.shape[3]))
                some = min(room, old.shape[2])
                new[: len(slots), :, :some] = old[slots, :, :some]
                tensors[layer] = new

    def fill(self, read: DynamicCache, first: int, rows: torch.Tensor, places: torch.Tensor) -> None:
        """Copy the columns of a cache of one row, from `first` on, to the given rows and their places there."""
        layers: list[Any] = read.layers
        for number, layer in enumerate(layers):
            for tensors, found in ((self.keys, layer.keys), (self.values, layer.values)):
                tensors[number][rows, :, places] = found[0, :, first:].transpose(0, 1)

    def repeat(self, first: int, copies: int) -> None:
        """Replace each slot from `first` on by adjacent copies."""
        for tensors in (self.keys, self.values):
            for layer, old in enumerate(tensors):
                tensors[layer] = torch.cat([old[:first], old[first:].repeat_interleave(copies, 0)])

    def prepare(self, slots: torch.Tensor, lengths: torch.Tensor, spans: Sequence[Span]) -> None:
        """Prepare a forward pass of one token per row.

        slots: of the rows. lengths: number of tokens that they hold. spans: of the rows with a prefix.
        """
        self._slots, self._lengths, self._spans = slots, lengths, spans
        self._used = int(lengths.max()) + 1
        self._before = max((length for _, _, length, _ in spans), default=0)

    def seen(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the position of each row's token, (rows), the columns that it sees, and their distances, (rows, n).

        The n columns are those of the longest prefix, then those after a prefix.
        """
        prefix = torch.zeros_like(self._lengths)
        for start, stop, length, _ in self._spans:
            prefix[start:stop] = length
        positions = prefix + self._lengths
        before, own = (torch.arange(n, device=prefix.device)[None] for n in (self._before, self._used))
        seen = torch.cat([before < prefix[:, None], own <= self._lengths[:, None]], 1)
        places = torch.cat([before.expand(len(prefix), -1), prefix[:, None] + own], 1)
        return positions, seen, positions[:, None] - places

    def update(
        self,
        keys: torch.Tensor,
        values: torch.Tensor,
        layer_idx: int,
        *_: object,
        **__: object,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Add a token to each row of a layer; called by the model. Return the keys and values of all slots."""
        self.keys[layer_idx][self._slots, :, self._lengths] = keys[:, :, 0]
        self.values[layer_idx][self._slots, :, self._lengths] = values[:, :, 0]
        return self.keys[layer_idx], self.values[layer_idx]

    def get_seq_length(self, layer_idx: int = 0) -> int:  # noqa: ARG002 -- the model's signature
        """Return the number of columns before the token; called by models that compute positions, which are given."""
        return self._before + self._used - 1

    def attend(
        self,
        layer: int,
        query: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        mask: torch.Tensor,
        scale: float,
        softcap: float | None = None,
        sinks: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return what each row's token reads, (rows, 1, heads, d).

        query: (rows, heads, 1, d). mask: added to scores, (rows, 1, 1, columns), with columns as in `seen`.
        softcap: bound of scores, as in Gemma 2. sinks: score per head of reading nothing, (heads,), as in gpt-oss.
        """
        rows, heads, _, size = query.shape
        groups, before, used = keys.shape[1], self._before, self._used
        query = query.reshape(rows, groups, heads // groups, size)
        scores = query.new_zeros((rows, groups, heads // groups, before + used))
        scores[..., before:] = (self._placed(query, len(keys)) @ keys[:, :, :used].mT)[self._slots]
        for start, stop, length, prefix in self._spans:
            some: Any = prefix.layers[layer]
            scores[start:stop, ..., :length] = _shared(query[start:stop], some.keys[0].mT)
        scores *= scale
        if softcap is not None:
            scores = softcap * (scores / softcap).tanh()
        scores += mask
        if sinks is not None:
            scores = torch.cat([scores, sinks.view(1, groups, -1, 1).expand(rows, -1, -1, 1).to(scores)], -1)
        weights = scores.softmax(-1, dtype=torch.float32).to(query.dtype)
        own = weights[..., before : before + used]
        found = (self._placed(own, len(keys)) @ values[:, :, :used])[self._slots]
        for start, stop, length, prefix in self._spans:
            some = prefix.layers[layer]
            found[start:stop] += _shared(weights[start:stop, ..., :length], some.values[0])
        return found.reshape(rows, 1, heads, -1)

    def _placed(self, rows: torch.Tensor, slots: int) -> torch.Tensor:
        """Return rows in their slots; other slots are 0."""
        placed = rows.new_zeros((slots, *rows.shape[1:]))
        placed[self._slots] = rows
        return placed


def _shared(rows: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
    """Multiply rows, (n, groups, heads of a group, a), by one matrix per group, (groups, a, b)."""
    count, groups, heads, _ = rows.shape
    product = rows.transpose(0, 1).reshape(groups, count * heads, -1) @ matrix
    return product.reshape(groups, count, heads, -1).transpose(0, 1)


def _attend(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor,
    scaling: float | None = None,
    *,
    ragged: RaggedCache,
    softcap: float | None = None,
    s_aux: torch.Tensor | None = None,
    position_bias: torch.Tensor | None = None,
    **_: object,
) -> tuple[torch.Tensor, None]:
    """Return the attention of a layer, as transformers asks for it."""
    if position_bias is not None:
        raise ValueError(f"{type(module).__name__}: {NAME} adds no position_bias")
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    return ragged.attend(module.layer_idx, query, key, value, attention_mask, scale, softcap, s_aux), None


AttentionInterface.register(NAME, _attend)


CACHE_ARGUMENTS = ("cache", "past_key_values", "cache_params")
"""Names of the cache argument: since transformers 5.24, before, and in recurrent models."""
KEPT = 8
"""Number of latest prefixes whose caches are kept."""


def cache_argument(model: torch.nn.Module) -> str | None:
    """Return the name of a model's cache argument; None if it takes none."""
    known = inspect.signature(model.forward).parameters
    return next((name for name in CACHE_ARGUMENTS if name in known), None)


def forward(
    model: torch.nn.Module, tokens: torch.Tensor, cache: Cache | None, *, layer: int | None = None, **more: Any
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return logits in float32, and the hidden states of a layer, (rows, tokens, d), if requested.

    Logits are only of the positions in `logits_to_keep`, if the model supports it. Layer 0 is the embeddings.
    cache: None for none.
    """
    known = inspect.signature(model.forward).parameters
    keep = more.pop("logits_to_keep", 0)
    if "logits_to_keep" in known:
        more["logits_to_keep"] = keep
    if layer is not None:
        more["output_hidden_states"] = True
    if cache is not None:
        more[cache_argument(model) or CACHE_ARGUMENTS[-1]] = cache
    output = model(tokens, use_cache=cache is not None, **more)
    logits: torch.Tensor = output.logits
    if "logits_to_keep" not in known and not isinstance(keep, int):
        logits = logits[:, keep]
    return logits.float(), None if layer is None else output.hidden_states[layer]


def read_row(
    model: torch.nn.Module,
    cache: DynamicCache,
    tokens: Sequence[int],
    at: Sequence[int] | torch.Tensor,
    seen: torch.Tensor,
    keep: Sequence[int],
    layer: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Add n tokens to the single row of a cache; return the logits of those to keep, and the states of all.

    at: positions of all columns, (before + n). seen: the columns that each token sees, (n, before + n), without regard
    to the window.
    """
    weight = next(model.parameters())
    places = torch.as_tensor(at, device=weight.device)
    positions = places[-len(tokens) :]
    logits, states = forward(
        model,
        torch.tensor([tokens], device=weight.device),
        cache,
        layer=layer,
        attention_mask=_masks(model, weight, seen.to(weight.device)[None, None], positions[:, None] - places),
        position_ids=positions[None],
        logits_to_keep=torch.tensor(keep, dtype=torch.long, device=weight.device),
    )
    return logits[0], None if states is None else states[0]


def continue_rows(model: torch.nn.Module, cache: RaggedCache, tokens: torch.Tensor) -> torch.Tensor:
    """Add a token to each row for which the cache is prepared; return the logits after it, (rows, vocabulary)."""
    positions, seen, distance = cache.seen()
    masks = _masks(model, next(model.parameters()), seen[:, None, None], distance[:, None, None])
    places = {"attention_mask": masks, "position_ids": positions[:, None]}
    with configured(model, _attn_implementation=NAME):
        return forward(model, tokens[:, None], cast(Cache, cache), ragged=cache, **places)[0][:, -1]


@contextmanager
def configured(model: Any, **values: object) -> Iterator[None]:
    """Set values of a model's config for a while."""
    config = model.config.get_text_config()
    before = {name: getattr(config, name) for name in values}
    try:
        for name, value in values.items():
            setattr(config, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(config, name, value)


def _masks(model: Any, weight: torch.Tensor, seen: torch.Tensor, distance: torch.Tensor) -> Any:
    """Return the attention mask of tokens; a mask per kind of layer if only some layers have a window.

    seen: in the shape of the mask, (rows, 1, tokens, columns). distance: position of each token minus the position of
    each column.
    """

    def mask(shown: torch.Tensor) -> torch.Tensor:
        low = torch.finfo(weight.dtype).min
        return torch.zeros(shown.shape, dtype=weight.dtype, device=shown.device).masked_fill_(~shown, low)

    window, kinds = sliding_window(model), set(getattr(model.config.get_text_config(), "layer_types", None) or ())
    if window is None or int(distance.max()) < window:
        return mask(seen)
    near = mask(seen & (distance < window))
    return {"full_attention": mask(seen), "sliding_attention": near} if len(kinds) > 1 else near


def sliding_window(model: Any) -> int | None:
    """Return the number of tokens, the current one included, that some layers see; None if all layers see all."""
    config = model.config.get_text_config()
    kinds = getattr(config, "layer_types", None)
    slides = kinds is None or "sliding_attention" in kinds
    return getattr(config, "sliding_window", None) if slides else None


class PrefixCaches:
    """Key/value caches of the latest few prefixes.

    A prefix is read as a whole and alone, so that its numbers do not depend on what was read before.
    """

    def __init__(self, model: torch.nn.Module) -> None:
        self._model = model
        self._kept: OrderedDict[Tokens, _Prefix] = OrderedDict()
        self._lock = Lock()

    def reused(self, prompts: Sequence[Tokens], group: Group) -> Group:
        """Return a group of prompts, changed to continue a cached prefix if that leaves fewer tokens to read."""
        tokens = prompts[group.members[0]][: group.shared]
        for kept in sorted(self._kept, key=len, reverse=True):
            more = len(group.members) * (group.shared - len(kept))
            if more < group.shared and kept == tokens[: len(kept)]:
                return Group(len(kept), group.members)
        return group

    def cache(self, tokens: Tokens) -> DynamicCache:
        """Return a cache of the prefix. Additions to it do not change other caches."""
        with self._lock:
            prefix = self._kept.setdefault(tokens, _Prefix())
            self._kept.move_to_end(tokens)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        with prefix.lock:  # threads that need it wait until it is read
            if not prefix.layers and tokens:
                device = next(self._model.parameters()).device
                cache = DynamicCache()  # without the model's config, so that no layer drops tokens outside its window
                forward(self._model, torch.tensor([tokens], device=device), cache, logits_to_keep=1)
                layers: list[Any] = cache.layers
                prefix.layers = [(layer.keys, layer.values) for layer in layers]
        copy = DynamicCache()
        for number, (keys, values) in enumerate(prefix.layers):
            copy.update(keys, values, number)
        return copy


@dataclass(slots=True)
class _Prefix:
    """A prefix's keys and values, layer by layer; empty until it is read."""

    lock: Any = field(default_factory=Lock)
    layers: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=list)
