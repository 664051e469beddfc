"""The top level of a recipe's file: which steps there are, and whence the system comes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeFile:
    """What stands at the top level of a recipe's file, the steps not yet looked into."""

    description: str
    generate: tuple[Mapping[str, Any], ...]
    select: Mapping[str, Any]
    link: Mapping[str, Any] = field(default_factory=dict)
    clean: Mapping[str, Any] = field(default_factory=dict)
    group: Mapping[str, Any] = field(default_factory=dict)
    pool: Mapping[str, Any] = field(default_factory=dict)
    citation: str = ""
    published: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """ValueError for no generator, and for a published score of no split, or that is none."""
        if not self.generate:
            raise ValueError("generate is empty: give a table [[generate]] for each generator")
        for place, score in self.published.items():
            if not re.fullmatch("[^/]+/[^/]+", place):
                raise ValueError(f"published names {place!r}: give an edition and a split, as in '2023/val'")
            if not 0 <= score <= 1:
                raise ValueError(f"published.{place} is {score}: give a macro-F1 from 0 to 1")
