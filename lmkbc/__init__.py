"""Knowledge base construction from language models. The public names that relations and editions import.

They are loaded when they are first used, so that a command which needs none of them starts at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lmkbc.edition import Download, Edition, Published
    from lmkbc.relation import EntityType, Precondition, Relation, Shape
    from lmkbc.scoring.matchers import (
        AliasScorer,
        IdScorer,
        MatchingScorer,
        ValueScorer,
    )
    from lmkbc.scoring.table import Metric

_HOMES = {
    "lmkbc.edition": ("Download", "Edition", "Published"),
    "lmkbc.relation": ("EntityType", "Precondition", "Relation", "Shape"),
    "lmkbc.scoring.matchers": ("AliasScorer", "IdScorer", "MatchingScorer", "ValueScorer"),
    "lmkbc.scoring.table": ("Metric",),
}

__all__ = [
    "AliasScorer",
    "Download",
    "Edition",
    "EntityType",
    "IdScorer",
    "MatchingScorer",
    "Metric",
    "Precondition",
    "Published",
    "Relation",
    "Shape",
    "ValueScorer",
]


def __getattr__(name: str) -> Any:
    """A public name, from the module where it is defined."""
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
