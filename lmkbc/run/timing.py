"""Cost of a saved run, from its `timing.json`: seconds, tokens, calls and cost, by step."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from lmkbc.errors import InputError
from lmkbc.files.reader import whole

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunTiming:
    """Seconds and usage of a run. usage: step -> name of a figure -> value."""

    seconds: float | None = None
    usage: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> RunTiming:
        """Read a file. If it is absent, or another kind of file, return an empty object; the latter logs a warning."""
        if not path.is_file():
            return cls()
        try:
            content = msgspec.json.decode(whole(path))
        except (InputError, msgspec.DecodeError) as error:
            log.warning("%s: %s", path, error)
            return cls()
        if not isinstance(content, dict):
            return cls()
        seconds, steps = content.get("seconds"), content.get("usage")
        known = steps.items() if isinstance(steps, dict) else ()
        usage = {str(name): values for name, values in known if isinstance(values, dict)}
        return cls(seconds if isinstance(seconds, int | float) else None, usage)

    def total(self, name: str) -> float | None:
        """Return the sum of a figure over all steps; None if no step has it."""
        values = [value for step in self.usage.values() if isinstance(value := step.get(name), int | float)]
        return math.fsum(values) if values else None

    @property
    def tokens(self) -> int | None:
        """Return the tokens of prompts and answers; None if unknown."""
        parts = [part for name in ("prompt_tokens", "completion_tokens") if (part := self.total(name)) is not None]
        return int(sum(parts)) if parts else None
