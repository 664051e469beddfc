"""Abstention threshold: answer nothing where the evidence says so, else leave it to another rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from lmkbc.errors import InputError
from lmkbc.select.ranking import Floats, Mask, Ranking
from lmkbc.select.rule import CUT, Range, Rule
from lmkbc.types import CandidateSet, Prediction

Evidence = Literal["nothing", "lead", "draws", "existence"]


@dataclass(frozen=True, kw_only=True)
class AbstentionThreshold(Rule):
    """Answer nothing where the evidence for it is at least `threshold`, else as `inner` does.

    evidence: "nothing" is the score of the proposal to answer nothing, "lead" its share of the sum with the best
    candidate's score, "draws" the share of draws that abstained, "existence" one minus the existence probability.
    source: the one whose word alone counts, as far as it says something: silence is no denial (MAVE, LM-KBC 2026, asks
    a source whether there is an object at all). Around `source-filter`, which leaves it out, such a source only denies.
    """

    name: ClassVar[str] = "abstention-threshold"
    search: ClassVar[Mapping[str, Range]] = {"threshold": CUT}
    inner: Rule
    threshold: float
    evidence: Evidence = "nothing"
    source: str = ""

    def __post_init__(self) -> None:
        """Refuse unknown evidence."""
        if self.evidence not in get_args(Evidence):
            known = ", ".join(get_args(Evidence))
            raise InputError(f"evidence of rule abstention-threshold is {self.evidence!r}: use one of {known}")
        if self.source and self.evidence == "draws":
            raise InputError(
                "evidence of rule abstention-threshold is 'draws', of all sources: with a source, use 'nothing'"
            )

    def strength(self, ranking: Ranking) -> Floats:
        """The evidence for answering nothing, in [0, 1], (n,)."""
        if self.evidence == "draws":
            return ranking.abstained
        if self.evidence == "existence":
            return self._said(ranking, "doubt") if self.source else ranking.doubt
        nothing, best = ranking.nothing, ranking.best
        if self.source:
            nothing = self._said(ranking, "nothing")
            best = ranking.by_model.get(self.source, np.zeros(ranking.scores.shape)).max(axis=1, initial=0.0)
        if self.evidence == "nothing":
            return nothing
        total = nothing + best
        return np.divide(nothing, total, out=np.zeros_like(total), where=total > 0)

    def _said(self, ranking: Ranking, kind: str) -> Floats:
        """What the source says of nothing, (n,), 0 where it says none."""
        silent = np.zeros(len(ranking.ranked))
        said: Floats = np.maximum(ranking.silence.get(f"{self.source}:{kind}", silent), 0.0)
        return said

    def open(self, ranking: Ranking) -> Mask:
        """Which queries get an answer, (n,)."""
        return self.strength(ranking) < self.threshold

    def select(self, candidates: CandidateSet) -> Prediction:
        """Nothing, or what the inner rule selects."""
        (kept,) = self.select_all([candidates])
        return kept

    def select_all(self, sets: Sequence[CandidateSet]) -> list[Prediction]:
        """Nothing, or what the inner rule selects, of each query."""
        opened = self.open(Ranking.of(sets))
        kept = self.inner.select_all(sets)
        return [
            made if made.failed or is_open else Prediction(made.query)
            for made, is_open in zip(kept, opened, strict=True)
        ]
