"""What each source of a pooled set says by itself: a source is a model, or one wording, file or table of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from msgspec import structs

from lmkbc.types import CandidateSet, Proposal


def sources(candidates: CandidateSet) -> list[str]:
    """The sources that propose objects, or nothing, or say whether there is any; in order."""
    given = [candidate.by_model for candidate in candidates.candidates]
    given += [nil.by_model for nil in (*candidates.nothing, *candidates.nil_probabilities)]
    return sorted({source for by_model in given for source, _ in by_model})


def own(candidates: CandidateSet, source: str) -> CandidateSet:
    """What one source proposes, with its own scores, best first."""
    objects = sorted(_own(candidates.candidates, source), key=lambda candidate: -candidate.score)
    return replace(
        candidates,
        candidates=tuple(objects),
        nothing=tuple(_own(candidates.nothing, source)),
        nil_probabilities=tuple(_own(candidates.nil_probabilities, source)),
    )


def _own(proposals: Sequence[Proposal], source: str) -> Iterator[Proposal]:
    for proposal in proposals:
        if (share := dict(proposal.by_model).get(source)) is not None:
            yield structs.replace(proposal, score=share, by_model=((source, share),))
