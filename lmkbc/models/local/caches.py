"""Key/value caches: forward passes that continue a cache, and the caches of prompts' prefixes."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, cast

import torch
from transformers import Cache, DynamicCache

from lmkbc.models.local.attention import NAME, RaggedCache
from lmkbc.models.local.prefixes import Group, Tokens

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
