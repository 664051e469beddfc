"""Quotes: sentences of the user's own texts that support facts, and what finds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from lmkbc.notes import Passage
from lmkbc.relation import Relation
from lmkbc.types import Query


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence of a document.

    file: relative to the folder. start, end: its characters in the file. address: of the document, "" if unknown.
    """

    text: str
    file: str
    start: int
    end: int
    address: str = ""


class Quoting(Protocol):
    """Texts of the user, which a prompt shows, and from which facts are quoted."""

    @property
    def folder(self) -> Path: ...  # noqa: D102
    @property
    def sha256(self) -> str: ...  # noqa: D102

    def find(self, queries: Sequence[Query]) -> Sequence[tuple[Passage, ...]]:
        """Return the passages that name each query's subject, best first."""
        ...

    def quote(self, query: Query, relation: Relation, names: Sequence[str]) -> Quote | None:
        """Return a sentence in which an object stands; None if it stands in none. names: of the object."""
        ...
