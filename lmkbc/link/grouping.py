"""Grouping: which answers to a query name the same object is decided before sources are pooled.

Sources can thus agree on an object even if they name it differently. How it is decided is in the code of systems and
plug-ins.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from lmkbc.generate.spec import check_names
from lmkbc.notes import Notes
from lmkbc.relation import Relation
from lmkbc.session.run import Run
from lmkbc.types import CandidateSet


class Grouper(Protocol):
    """Gives one name to each object of a query."""

    def merged(self, sources: Sequence[Sequence[CandidateSet]]) -> list[list[CandidateSet]]:
        """Return the sets of all sources, each in the order of the queries, with one name for each object."""
        ...


@dataclass(frozen=True, kw_only=True)
class Grouping(ABC):
    """A recipe's table `group`, whose `component` is of a system's code.

    only: the relations whose names are grouped; () for all without numbers.
    """

    only: tuple[str, ...] = ()

    def check(self, relations: Mapping[str, Relation]) -> None:
        """Raise InputError for a relation that does not exist. relations: all relations, by every name."""
        check_names(self.only, relations, "group.only")

    def grouped(self, run: Run) -> dict[str, Relation]:
        """Return the relations whose names are grouped, by the edition's names."""
        return {
            name: relation
            for name, relation in run.relations.items()
            if (relation.is_in(self.only) if self.only else not relation.has_numbers())
        }

    @abstractmethod
    def open(self, run: Run, notes: Notes, *, replayed: bool = False) -> Grouper | None:
        """Return the grouper; None if it lacks a model beside recorded answers.

        replayed: whether recorded answers replace models. Raise InputError for something that the run lacks.
        """
