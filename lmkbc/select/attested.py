"""Attested: one model's answers, corrected by other models and by verification where its confidence is low."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from lmkbc.select.rule import Rule
from lmkbc.types import Candidate, CandidateSet, Prediction, Proposal


@dataclass(frozen=True, kw_only=True)
class Attested(Rule):
    """Trust one model, `voice`, and correct it where it is unsure: `inner` selects from what that model proposes.

    The mean score of the selected is the query's confidence. Below `prune`, those that no other model proposes are
    dropped, if other models propose anything; below `add`, candidates that verification holds true with at least
    `admit` are added, whichever model proposes them (CS2, LM-KBC 2026, row-wise gates of award winners). Where the
    model proposes nothing with a score above 0, `inner` selects from the candidates of all.
    """

    name: ClassVar[str] = "attested"
    inner: Rule
    voice: str
    prune: float = 0.5
    add: float = 0.7
    admit: float = 1 / 3

    def select(self, candidates: CandidateSet) -> Prediction:
        """What `inner` selects of the voice's candidates, without the pruned, then the added."""
        own = replace(
            candidates,
            candidates=tuple(sorted(self._own(candidates.candidates), key=lambda proposal: -proposal.score)),
            nothing=tuple(self._own(candidates.nothing)),
            doubts=tuple(self._own(candidates.doubts)),
        )
        scores = [candidate.score for candidate in own.candidates] + [
            absence.score for absence in (*own.nothing, *own.doubts)
        ]
        if candidates.failed or not any(scores):
            return self.inner.select(candidates)
        kept = self.inner.select(own)
        objects = kept.objects
        confidence = math.fsum(candidate.score for candidate in objects) / max(len(objects), 1)
        if confidence < self.prune and any(self._others(candidate) for candidate in candidates.candidates):
            objects = tuple(candidate for candidate in objects if self._others(candidate))
        if confidence < self.add:
            texts = {candidate.text for candidate in objects}
            objects += tuple(
                candidate
                for candidate in candidates.candidates
                if self._admits(candidate) and candidate.text not in texts
            )
        return replace(kept, objects=objects)

    def _own(self, proposals: Iterable[Proposal]) -> Iterator[Proposal]:
        """What the voice proposes, with its own scores."""
        shares = ((proposal, dict(proposal.by_model).get(self.voice)) for proposal in proposals)
        yield from (replace(proposal, score=share) for proposal, share in shares if share is not None)

    def _others(self, candidate: Candidate) -> bool:
        return any(name != self.voice for name, _ in candidate.by_model)

    def _admits(self, candidate: Candidate) -> bool:
        return candidate.truth is not None and candidate.truth >= self.admit
