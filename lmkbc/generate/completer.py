"""A language model that another step asks for short texts, as a table of a recipe names it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lmkbc.generate.spec import declared
from lmkbc.models.base import LanguageModel
from lmkbc.run.base import Run
from lmkbc.settings import checked
from lmkbc.types import Notes

COMPLETERS = {"causal": "lmkbc.generate.causal:CausalCompleter", "chat": "lmkbc.generate.chat:ChatCompleter"}
"""Component -> module:dataclass."""


@dataclass(frozen=True, kw_only=True)
class CompleterSpec(ABC):
    """What every such table says. component: which back end."""

    component: str

    @abstractmethod
    def is_given(self, run: Run) -> bool:
        """Whether anybody said whom to ask, or the model is on this machine."""

    @abstractmethod
    def open(self, run: Run, notes: Notes) -> LanguageModel:
        """The model."""


def completer(table: Mapping[str, Any], what: str) -> CompleterSpec:
    """The model that a table names by component and settings. InputError for what makes no sense."""
    spec: type[CompleterSpec] = declared(table, COMPLETERS, f"{what}: unknown component")
    return checked(spec, table, what)
