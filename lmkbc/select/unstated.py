"""Selection without the facts that labelled rows state, so that what is left is not read from labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from lmkbc.select.rule import Narrowed, PerRelation
from lmkbc.statements import Statements
from lmkbc.types import CandidateSet, Prediction

STATED = "labelled rows state all that would be kept"
"""Reason for a withheld answer."""


@dataclass(frozen=True)
class Unstated(Narrowed):
    """Selector that leaves out what labelled rows state, after the usual selector's choice.

    An answer that loses all its objects is withheld, and not empty.
    """

    statements: Statements = field(kw_only=True)

    @classmethod
    def of(cls, usual: PerRelation, statements: Statements) -> Unstated:
        """Return the selector, with the calibrations of the usual one."""
        return cls(usual.general, usual.rules, usual.calibrations, usual.curves, usual=usual, statements=statements)

    def select_all(self, sets: Sequence[CandidateSet]) -> list[Prediction]:
        """Return the usual choice without what labelled rows state."""
        return [self._left(made) for made in self.usual.select_all(sets)]

    def _left(self, made: Prediction) -> Prediction:
        left = tuple(one for one in made.objects if not self.statements.stated_by(made.query, one))
        return replace(made, objects=left, withheld=STATED if made.objects and not left else made.withheld)
