"""What a local model was asked, and what that took."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any


@dataclass(slots=True)
class Usage:
    """Counts since a model was loaded. What came from the store is in them, as if it had been asked for.

    prompt_tokens: of each prompt once, however many draws or options follow it. completion_tokens: that were decoded,
    end tokens included. calls: prompts that the model was given. from_store: answers that it did not give, since they
    were stored. saved_by_prefixes: prompt tokens that were not read, since prompts before began with them.
    saved_by_store: tokens of stored answers and their prompts. seconds: that the model worked.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0
    from_store: int = 0
    saved_by_prefixes: int = 0
    saved_by_store: int = 0
    seconds: float = 0.0

    def replayed(self, prompt_tokens: int, completion_tokens: int = 0) -> None:
        """Count a stored answer."""
        self.from_store += 1
        self.prompt_tokens += prompt_tokens
        self.completion_tokens += completion_tokens
        self.saved_by_store += prompt_tokens + completion_tokens

    @contextmanager
    def added(self, told: dict[str, Any]) -> Iterator[None]:
        """Add what is counted in the meantime to the records of a step, even of one that fails."""
        before = replace(self)
        try:
            yield
        finally:
            for name, value in asdict(self).items():
                told[name] = round(told.get(name, 0) + value - getattr(before, name), 3)
