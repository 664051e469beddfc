"""Ways to read prompts with a shared beginning in a causal model: packed in a row, a row each, or each as a whole."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import LinearAttentionCacheLayerMixin

from lmkbc.models.local.branches import Batched, Branches, Packed
from lmkbc.models.local.caches import Beginnings, cache_argument, sliding_window
from lmkbc.models.local.prefixes import Tokens

TRIAL = "The capital of France is", (" Paris, the capital of", " a city on the river")
"""A beginning and two ways to go on, on which a model that is not known is tried."""

RANKS = 3
"""In a trial in half precision, the likeliest token is among so many of the likeliest of the other way of reading."""

NARROW = 3
"""Tokens of a window in a trial of what is longer."""


class Abilities(NamedTuple):
    """packs: many prompts can stand in one row, kept apart by a mask. shares: a cache can be gone on from at all.

    reaches: such prompts may be longer than the model's sliding window, where it has one.
    """

    packs: bool
    shares: bool
    reaches: bool


def abilities(model: PreTrainedModel, encode: Callable[[Sequence[str]], list[Tokens]]) -> Abilities:
    """Return what a model can do.

    What a class of transformers can do is known from its arguments, its positions and its kind of cache. A model that
    brings a class of its own, and every model in float32, is tried on text besides, since a wrong answer there is one
    that nobody sees. In half precision two correct ways of reading differ so much that ranks are compared.
    """
    takes = inspect.signature(model.forward).parameters
    alibi = getattr(model.config, "alibi", False)  # there, positions come from the mask
    layers = DynamicCache(config=model.config).layers
    recurrent = any(isinstance(layer, LinearAttentionCacheLayerMixin) for layer in layers)
    shares = cache_argument(model) is not None
    packs = shares and "position_ids" in takes and not alibi and not recurrent
    trusted = type(model).__module__.startswith("transformers.models.") and model.dtype != torch.float32
    prefix, prompts = _trial(model, encode)

    def agrees(branches: Branches) -> bool:
        tokens = torch.tensor(prompts, device=model.device)
        plain = model(tokens, use_cache=False).logits[:, -1].float()
        found = branches.read(prompts, [prefix, prefix], [1, 1])
        if model.dtype == torch.float32:
            return bool((found - plain).abs().max() <= 1e-3 * plain.abs().max())
        return bool((found.topk(RANKS).indices == plain.argmax(-1)[:, None]).any(-1).all())

    with torch.inference_mode():
        packs = packs and (trusted or agrees(Packed(model, Beginnings(model))))
        shares = shares and (packs or trusted or agrees(Batched(model, prefix)))
        if not packs or sliding_window(model) is None:
            return Abilities(packs, shares, packs)
        with _narrowed(model):
            try:
                return Abilities(packs, shares, agrees(Packed(model, Beginnings(model))))
            except Exception:  # a class that takes no mask for each kind of layer fails in any way
                return Abilities(packs, shares, reaches=False)


@contextmanager
def _narrowed(model: PreTrainedModel) -> Iterator[None]:
    """Let a model's window be so small that a trial of few tokens is longer."""
    config = model.config.get_text_config()
    window, config.sliding_window = config.sliding_window, NARROW
    try:
        yield
    finally:
        config.sliding_window = window


def _trial(model: PreTrainedModel, encode: Callable[[Sequence[str]], list[Tokens]]) -> tuple[Tokens, list[Tokens]]:
    """Return a beginning, and two prompts of one length that go on from it: few tokens, so that no window is left."""
    beginning, ways = TRIAL
    size = model.config.get_text_config().vocab_size
    prefix, *own = (tuple(token % size for token in tokens) for tokens in encode([beginning, *ways]))
    length = min(*map(len, own), 3)
    return prefix[:5], [prefix[:5] + tokens[:length] for tokens in own]
