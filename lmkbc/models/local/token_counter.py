"""Stand-in for a local model in a dry run, with its tokenizer alone."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from lmkbc.models.answers import CallCounter
from lmkbc.models.local.decode import Completion, Decoding
from lmkbc.models.local.model import CausalModel


class TokenCounter(CausalModel):
    """Tokenises prompts as the model does, counts them, and answers none.

    model: without weights; only its settings are used.
    """

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, counter: CallCounter) -> None:
        super().__init__(model, tokenizer)
        self._counter = counter
        self._scored: set[str] = set()

    def complete(self, prompts: Sequence[str], how: Decoding) -> Iterator[tuple[int, list[Completion]]]:
        """Count the prompts, and yield no draws for them."""
        for place, (prompt, tokens) in enumerate(zip(prompts, self.encode(prompts), strict=True)):
            self._counter.add(_key(prompt, how), len(tokens), how.draws * how.max_tokens)
            yield place, [Completion(None, finished=False)] * how.draws

    def log_probabilities(self, prompts: Sequence[str], options: Sequence[Sequence[str]]) -> list[list[float]]:
        """Count the prompts, and return -inf for all options."""
        distinct = list(dict.fromkeys(option for row in options for option in row))
        lengths = dict(zip(distinct, map(len, self.encode(distinct)), strict=True))
        for prompt, row, tokens in zip(prompts, options, self.encode(prompts), strict=True):
            self._scored.add(prompt)
            self._counter.add(_key(prompt, row), len(tokens) + sum(lengths[option] for option in row), 0)
        return [[-math.inf] * len(row) for row in options]

    def states(self, prompts: Sequence[str], depth: float) -> npt.NDArray[np.float32]:
        """Count the prompts, and return zeros for all states."""
        for prompt, tokens in zip(prompts, self.encode(prompts), strict=True):
            if self._watched is None or prompt not in self._scored:  # else it is read with its options
                self._counter.add(_key(prompt, depth), len(tokens), 0)
        return np.zeros((len(prompts), self._config.hidden_size), dtype=np.float32)


def _key(prompt: str, how: object) -> str:
    return hashlib.sha256(f"{how!r} {prompt}".encode("utf-8", "backslashreplace")).hexdigest()
