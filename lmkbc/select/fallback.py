"""Fallback: a second rule where the first keeps nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lmkbc.select.rule import Rule
from lmkbc.types import CandidateSet, Prediction


@dataclass(frozen=True, kw_only=True)
class Fallback(Rule):
    """As `first` does, and where it keeps nothing, as `then` does.

    With gates around `then`, an abstention is reversed where several signals agree that it is one too many (CS2, LM-KBC
    2026: few draws for nothing, a probable object, and a leading candidate).
    """

    name: ClassVar[str] = "fallback"
    first: Rule
    then: Rule

    def select(self, candidates: CandidateSet) -> Prediction:
        """What the first rule selects, else what the second does. A query that no model answered stays failed."""
        kept = self.first.select(candidates)
        return kept if kept.failed or kept.objects else self.then.select(candidates)
