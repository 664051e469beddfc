"""How likely a local causal model is to go on with each of many options, kept in the store."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lmkbc.models.base import Prompt
from lmkbc.models.causal.model import CausalModel
from lmkbc.models.store import Call, Store
from lmkbc.types import Notes


class ClosedScorer:
    """Scores options after prompts. name, identity: what the store knows the model as. notes: where that is counted."""

    def __init__(self, model: CausalModel, store: Store, name: str, identity: str, notes: Notes | None = None) -> None:
        self._model, self._store, self._name, self._identity = model, store, name, identity
        self._notes = notes or Notes()

    def scores(
        self, prompts: Sequence[Prompt], options: Sequence[Sequence[str]], by_length: bool = False
    ) -> list[npt.NDArray[np.float64]]:
        """Log-probabilities of each prompt's options, or those per token; NaN for what the window has no room for."""
        texts = [self._model.text(prompt) for prompt in prompts]
        choices = [
            [f" {text}" if prompt.form == "completion" else text for text in row]
            for prompt, row in zip(prompts, options, strict=True)
        ]
        calls = [
            Call(model=self._name, revision=self._identity, prompt=text, sampling={"options": row})
            for text, row in zip(texts, choices, strict=True)
        ]
        found: list[Any] = [self._store.get(call) for call in calls]
        missing = [place for place, one in enumerate(found) if one is None]
        with self._model.usage.added(self._notes.usage):
            self._model.replayed([text for text, one in zip(texts, found, strict=True) if one is not None])
            fresh = self._model.log_probabilities([texts[at] for at in missing], [choices[at] for at in missing])
        for place, logs in zip(missing, fresh, strict=True):
            found[place] = [p if math.isfinite(p) else None for p in logs]  # JSON has no infinity
        self._store.put((calls[place], found[place]) for place in missing)
        whole = [np.array([np.nan if p is None else p for p in row], dtype=np.float64) for row in found]
        if by_length:
            whole = [logs / self._lengths(row) for logs, row in zip(whole, choices, strict=True)]
        return whole

    def _lengths(self, options: Sequence[str]) -> npt.NDArray[np.float64]:
        return np.array([max(len(tokens), 1) for tokens in self._model.encode(options)], dtype=np.float64)
