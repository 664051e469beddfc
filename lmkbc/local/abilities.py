"""Tests of how a causal model can read and answer prompts with a shared prefix: together, one row each, or whole."""

from __future__ import annotations

import inspect
import logging
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import LinearAttentionCacheLayerMixin

from lmkbc.local.branches import Batched, Ragged
from lmkbc.local.caches import PrefixCaches, cache_argument, configured, sliding_window
from lmkbc.models.hardware import precision
from lmkbc.models.loading import quiet
from lmkbc.models.prefixes import Tokens

log = logging.getLogger("lmkbc")

TRIAL = "The capital of France is", (" Paris, the capital of", " a city on the river", "\nFrance borders", ", I think,")
"""A prefix and its continuations, with which unknown models are tested."""

RANKS = 3
"""In a test in half precision, the top token must be among this many top tokens of the other way of reading."""

NARROW = 3
"""Tokens of the window in a test of prompts that exceed it."""

EXACT, COARSE = 1e-3, 0.06
"""Largest difference of logits, as a share of the largest logit, in float32 and in half precision.

Two correct ways of a recurrent model differ by up to 0.03 in bfloat16, a correct and a wrong one by 0.08 and more.
"""


class Abilities(NamedTuple):
    """Ways in which a model can read prompts.

    packs: many prompts can share one row, separated by a mask.
    shares: a cache can be continued by further prompts.
    grows: a cache can be continued token by token; without it, all tokens are read again for each token of an answer.
    ragged: answers of any lengths can grow together, and share prefixes.
    reach: most tokens of a prompt and its answer that can share a row.
    """

    packs: bool
    shares: bool
    grows: bool
    ragged: bool
    reach: float


def abilities(model: PreTrainedModel, encode: Callable[[Sequence[str]], list[Tokens]]) -> Abilities:
    """Return what a model can do.

    The abilities of a class of transformers follow from its arguments, its positions and its kind of cache. Recurrent
    models, models that read pictures too, classes from elsewhere, and all models in float32, are also tested on text,
    since wrong results would stay unnoticed. Answers of any lengths, and prompts beyond a window, are always tested.
    In half precision, two correct ways of reading differ so much that only ranks are compared, except for recurrent
    models.
    """
    takes = inspect.signature(model.forward).parameters
    alibi = getattr(model.config, "alibi", False)  # then positions come from the mask
    cached = cache_argument(model) is not None
    recurrent = not cached or _has_states(model)
    exact = precision(model) == "float32"
    trusted = type(model).__module__.startswith("transformers.models.") and not exact
    trusted = trusted and not recurrent and model.config.get_text_config() is model.config
    prefix, prompts = _trial(model, encode)

    def works(steps: int, common: Tokens | None = None) -> bool:
        """Return whether branches give the logits of whole prompts: ragged ones, or batched ones of a common prefix."""
        try:  # a class may refuse our cache, or a mask per kind of layer, with any error
            branches = Ragged(model, PrefixCaches(model)) if common is None else Batched(model, common)
            tokens = torch.tensor(prompts, device=model.device)
            plain = model(tokens, use_cache=False).logits[:, -1].float()
            found = branches.read([prompt[: len(prompt) - steps] for prompt in prompts], [prefix] * len(prompts))
            for place in range(tokens.shape[1] - steps, tokens.shape[1]):
                found = branches.step(range(len(prompts)), [prompt[place] for prompt in prompts])
            if recurrent or exact:
                return bool((found - plain).abs().max() <= (EXACT if exact else COARSE) * plain.abs().max())
            return bool((found.topk(RANKS).indices == plain.argmax(-1)[:, None]).any(-1).all())
        except Exception as error:
            log.info("%s reads prompts in a slower way: %s", type(model).__name__, error)
            return False

    with torch.inference_mode(), quiet():
        packs = cached and "position_ids" in takes and not alibi and not recurrent and (trusted or works(0))
        grows = packs or (cached and works(1, ()))
        shares = packs or (grows and (trusted or works(0, prefix)))
        ragged = packs and model._supports_attention_backend and works(1)
        reach, window = math.inf if packs else 0, sliding_window(model)
        if packs and window is not None:
            with configured(model, sliding_window=NARROW):
                reach = math.inf if works(int(ragged)) else window
        return Abilities(packs, shares, grows, ragged, reach)


def _has_states(model: PreTrainedModel) -> bool:
    """Return whether some layers keep a state instead of keys and values."""
    return any(isinstance(layer, LinearAttentionCacheLayerMixin) for layer in DynamicCache(config=model.config).layers)


def _trial(model: PreTrainedModel, encode: Callable[[Sequence[str]], list[Tokens]]) -> tuple[Tokens, list[Tokens]]:
    """Return a prefix, and prompts of equal length that start with it; they are short enough for any window."""
    beginning, ways = TRIAL
    size = model.config.get_text_config().vocab_size
    prefix, *rests = (tuple(token % size for token in tokens) for tokens in encode([beginning, *ways]))
    length = min(*map(len, rests), 3)
    return prefix[:5], [prefix[:5] + tokens[:length] for tokens in rests]
