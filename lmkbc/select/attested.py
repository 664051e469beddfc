"""Attested: what one voice says, corrected by other voices and by verification where it is unsure of itself."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from lmkbc.select.pool import Proposal
from lmkbc.select.rule import Rule
from lmkbc.types import Candidate, CandidateSet, Prediction


@dataclass(frozen=True, kw_only=True)
class Attested(Rule):
    """Select as `inner` from what the model `voice` proposes; a row's confidence is the mean score of what that keeps.

    In rows of confidence below `prune`, only what another voice names too is kept, where another speaks at all; below
    `add`, what verification holds true with at least `admit` joins, whoever names it (CS2, LM-KBC 2026, row-wise gates
    of award winners). Where the voice proposes nothing by name, `inner` selects from all candidates.
    """

    name: ClassVar[str] = "attested"
    inner: Rule
    voice: str
    prune: float = 0.5
    add: float = 0.7
    admit: float = 1 / 3

    def select(self, candidates: CandidateSet) -> Prediction:
        """What the voice's own selection, the other voices and the verdicts leave and add."""
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
