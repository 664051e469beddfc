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
            candidates=tuple(sorted(self._own(candidates.candidates), key=lambda one: -one.score)),
            nothing=tuple(self._own(candidates.nothing)),
            doubts=tuple(self._own(candidates.doubts)),
        )
        scores = [one.score for one in own.candidates] + [one.score for one in (*own.nothing, *own.doubts)]
        if candidates.failed or not any(scores):
            return self.inner.select(candidates)
        kept = self.inner.select(own)
        objects = kept.objects
        confidence = math.fsum(one.score for one in objects) / max(len(objects), 1)
        if confidence < self.prune and any(self._others(one) for one in candidates.candidates):
            objects = tuple(one for one in objects if self._others(one))
        if confidence < self.add:
            texts = {one.text for one in objects}
            objects += tuple(one for one in candidates.candidates if self._admits(one) and one.text not in texts)
        return replace(kept, objects=objects)

    def _own(self, proposals: Iterable[Proposal]) -> Iterator[Proposal]:
        """What the voice proposes, with its own scores."""
        shares = ((one, dict(one.by_model).get(self.voice)) for one in proposals)
        yield from (replace(one, score=share) for one, share in shares if share is not None)

    def _others(self, one: Candidate) -> bool:
        return any(name != self.voice for name, _ in one.by_model)

    def _admits(self, one: Candidate) -> bool:
        return one.truth is not None and one.truth >= self.admit
