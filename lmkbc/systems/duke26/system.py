"""Weigh the share of draws and the verification score (dukesun99, LM-KBC 2026)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lmkbc.errors import InputError
from lmkbc.select.composed import Combine, Verified, with_verification
from lmkbc.types import CandidateSet, Prediction


@dataclass(frozen=True, kw_only=True)
class Weighted(Verified):
    """Score by the mean of score and verification score, then select as `inner` does.

    weight: of the verification score. Candidates without a verification score stay as they are.
    """

    name: ClassVar[str] = "duke26/weighted"
    combine: Combine = "mean"
    weight: float

    def __post_init__(self) -> None:
        """Raise InputError for a weight that is no share."""
        if not 0 <= self.weight <= 1:
            raise InputError(f"weight of rule {self.name} is {self.weight}: give a share in [0, 1]")

    def select(self, candidates: CandidateSet) -> Prediction:
        """Return the selection of the inner rule from the candidates with the mean scores."""
        return self.inner.select(with_verification(candidates, self.combine, self.weight))


COMPONENTS = {Weighted.name: Weighted}
