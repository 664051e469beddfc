"""A system as a recipe: which components do each step, with their settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """A recipe: which components do each step, with their settings; plus citation and published scores.

    generate: one table per generator. link: how names are linked (see `lmkbc.link.recipe`). clean: types = true drops
    objects that an index knows only as things of other kinds. published: "edition/split" -> macro-F1.
    """

    name: str
    description: str
    generate: Sequence[Mapping[str, Any]]
    select: Mapping[str, Any]
    link: Mapping[str, Any] = field(default_factory=dict)
    clean: Mapping[str, Any] = field(default_factory=dict)
    pool: Mapping[str, Any] = field(default_factory=dict)
    citation: str = ""
    published: Mapping[str, float] = field(default_factory=dict)
