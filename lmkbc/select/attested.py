"""Attested: one source's list, corrected by how much of it another one attests."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from lmkbc.select.rule import Rule
from lmkbc.select.sources import own, sources
from lmkbc.types import Candidate, CandidateSet, Prediction


@dataclass(frozen=True, kw_only=True)
class Attested(Rule):
    """Trust one source's list, `voice`, and correct it where another, the `witness`, attests little of it.

    `inner` selects the list from what the voice proposes. The query's confidence is the share of the list that the
    witness proposes with a score of at least `attest`. Below `prune`, what the witness never proposes is dropped; below
    `add`, candidates that verification holds true with at least `admit` join, whoever proposes them (CS2, LM-KBC 2026:
    lists of award winners, attested year by year, and led back from the winner to the award). A witness that is not
    heard corrects nothing; where the voice is not, `inner` selects from the candidates of all.
    """

    name: ClassVar[str] = "attested"
    inner: Rule
    voice: str
    witness: str
    attest: float = 0.25
    prune: float = 0.5
    add: float = 0.7
    admit: float = 1 / 3

    def select(self, candidates: CandidateSet) -> Prediction:
        """The list, without the pruned, then the added."""
        heard = sources(candidates)
        if candidates.failed or self.voice not in heard:
            return self.inner.select(candidates)
        kept = self.inner.select(own(candidates, self.voice))
        if self.witness not in heard:
            return kept
        rates = {candidate.text: candidate.score for candidate in own(candidates, self.witness).candidates}
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
