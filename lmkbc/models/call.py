"""A draw from a model, and the key under which its answer is stored."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import msgspec


@dataclass(frozen=True, kw_only=True)
class Call:
    """A draw from a model, with everything that determines its answer: no timeouts, keys or concurrency.

    prompt: the messages or the text.
    sampling: JSON values.
    draw: distinguishes draws with the same prompt and seed.
    """

    model: str
    prompt: Any
    base_url: str = ""
    revision: str = ""
    sampling: Mapping[str, Any] = field(default_factory=dict)
    schema: Mapping[str, Any] | None = None
    seed: int | None = None
    draw: int = 0

    @cached_property
    def key(self) -> str:
        """Return the SHA-256 of the call's canonical JSON, in which 1 and 1.0 are equal."""
        return _digest(self.settings | {"sampling": _whole(self.sampling), "prompt": self.prompt_digest})

    @cached_property
    def prompt_digest(self) -> str:
        """Return the SHA-256 of the prompt's JSON."""
        return _digest(self.prompt)

    @property
    def settings(self) -> dict[str, Any]:
        """Return all fields except the prompt."""
        return {name: getattr(self, name) for name in _SETTINGS}


_SETTINGS = tuple(field.name for field in fields(Call) if field.name != "prompt")


def canonical_json(value: Any) -> str:
    """Return a value's JSON with sorted names, so that equal values give equal texts."""
    return msgspec.json.encode(value, order="deterministic").decode()


def _digest(value: Any) -> str:
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def _whole(value: Any) -> Any:
    """Return a JSON value with whole floats as integers."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {name: _whole(inner) for name, inner in value.items()}
    return [_whole(inner) for inner in value] if isinstance(value, list | tuple) else value
