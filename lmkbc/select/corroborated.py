"""Corroborated: one source's list, corrected by how much of it another source proposes too."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from lmkbc.select.rule import Rule
from lmkbc.select.sources import own, sources
from lmkbc.types import Candidate, CandidateSet, Prediction


@dataclass(frozen=True, kw_only=True)
class Corroborated(Rule):
    """Trust the list of one source, and correct it where another source corroborates little of it.

    `inner` selects the list from what `source` proposes. The query's confidence is the share of the list that the
    source `corroborating` proposes with a score of at least `attest`. Below `prune`, objects that it never proposes are
    dropped. Below `add`, candidates whose verification score is at least `admit` join, whoever proposes them (CS2,
    LM-KBC 2026: lists of award winners, checked year by year, and led back from the winner to the award). Without
    answers of `corroborating` nothing is corrected. Without answers of `source`, `inner` selects from all candidates.
    """

    name: ClassVar[str] = "corroborated"
    inner: Rule
    source: str
    corroborating: str
    attest: float = 0.25
    prune: float = 0.5
    add: float = 0.7
    admit: float = 1 / 3

    def select(self, candidates: CandidateSet) -> Prediction:
        """The list, without the pruned, then the added."""
        heard = sources(candidates)
        if candidates.failed or self.source not in heard:
            return self.inner.select(candidates)
        kept = self.inner.select(own(candidates, self.source))
        if self.corroborating not in heard:
            return kept
        rates = {candidate.text: candidate.score for candidate in own(candidates, self.corroborating).candidates}
        attested = [rates.get(candidate.text, 0.0) for candidate in kept.objects]
        confidence = sum(rate >= self.attest for rate in attested) / max(len(attested), 1)
        objects = kept.objects
        if confidence < self.prune:
            objects = tuple(candidate for candidate, rate in zip(objects, attested, strict=True) if rate > 0)
        if confidence < self.add:
            listed = {candidate.text for candidate in kept.objects}
            objects += tuple(
                candidate
                for candidate in candidates.candidates
                if self._admits(candidate) and candidate.text not in listed
            )
        return replace(kept, objects=objects)

    def _admits(self, candidate: Candidate) -> bool:
        return candidate.truth is not None and candidate.truth >= self.admit
