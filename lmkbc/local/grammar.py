"""Answers in the form of a JSON schema: tokens that would leave the form are ruled out before each step."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, cast

import llguidance
import numpy as np
import torch
from llguidance.hf import from_tokenizer
from transformers import PreTrainedTokenizerBase

from lmkbc.errors import InputError

_LAYOUT: Any = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""Spaces as in examples; a model that may choose them can write spaces without end."""


class Form:
    """The form of one answer while it grows."""

    def __init__(self, matcher: Any) -> None:
        self._matcher = matcher

    def allowed(self) -> bytes:
        """Return a bit for each token that may come next, the lowest bit of each byte first."""
        return bytes(self._matcher.compute_bitmask())

    def take(self, token: int) -> bool:
        """Add a token, and return whether the answer is complete."""
        self._matcher.consume_token(token)
        return bool(self._matcher.is_stopped())


class Forms:
    """The forms of answers in a tokenizer's tokens. size: number of scores per step."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, size: int) -> None:
        self._tokenizer, self._size = tokenizer, size

    def of(self, schema: str) -> Form:
        """Return the form of one answer. schema: JSON schema, as text."""
        grammar = llguidance.LLMatcher.grammar_from_json_schema(schema, defaults=_LAYOUT)
        return Form(llguidance.LLMatcher(self._tokens, grammar))

    @cached_property
    def _tokens(self) -> llguidance.LLTokenizer:
        """Return the table of tokens. InputError for a tokenizer that has none."""
        try:
            return from_tokenizer(cast(Any, self._tokenizer), n_vocab=self._size)
        except ValueError as error:
            reason = " ".join(str(error).split())[:200]
            hint = "use listing = 'json' in the recipe's prompt"
            raise InputError(f"the model's tokenizer cannot hold answers to a form ({reason}): {hint}") from None


def limited(logits: torch.Tensor, of_rows: Sequence[Form | None]) -> torch.Tensor:
    """Return scores with -inf for tokens that the forms do not allow, (rows, tokens)."""
    if not any(of_rows):
        return logits
    every, tokens = np.full(-(-logits.shape[1] // 8), 255, np.uint8), logits.shape[1]
    bits = [np.frombuffer(form.allowed(), np.uint8)[: len(every)] if form else every for form in of_rows]
    mask = np.unpackbits(np.stack(bits), axis=1, count=tokens, bitorder="little").astype(np.bool_)
    return logits.masked_fill(~torch.from_numpy(mask).to(logits.device), float("-inf"))
