"""What dukesun99 alone do (LM-KBC 2026): the share of draws and the verification score have a weight each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lmkbc.errors import InputError
from lmkbc.select.composed import with_verification
from lmkbc.select.rule import Rule
from lmkbc.types import CandidateSet, Prediction


@dataclass(frozen=True, kw_only=True)
class Weighted(Rule):
    """Score by the mean of score and verification score, then select as `inner` does.

    weight: of the verification score. Candidates without a verification score stay as they are.
    """

    name: ClassVar[str] = "duke26/weighted"
    inner: Rule
    weight: float

    def __post_init__(self) -> None:
        """Raise InputError for a weight that is no share."""
        if not 0 <= self.weight <= 1:
            raise InputError(f"weight of rule {self.name} is {self.weight}: give a share in [0, 1]")

    @property
    def reads_verification(self) -> bool:
        """Return True."""
        return True

    def select(self, candidates: CandidateSet) -> Prediction:
        """Return the selection of the inner rule from the candidates with the mean scores."""
        return self.inner.select(with_verification(candidates, "mean", self.weight))


COMPONENTS = {Weighted.name: Weighted}
