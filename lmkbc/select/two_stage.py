"""Two-stage: a vote within each source, then one across sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from msgspec import structs

from lmkbc.select.rule import Rule
from lmkbc.select.sources import own, sources
from lmkbc.types import (
    Candidate,
    CandidateSet,
    Nil,
    Prediction,
    Source,
    State,
)


@dataclass(frozen=True, kw_only=True)
class TwoStage(Rule):
    """Select `within` what each source proposes, then `across` what the sources selected (Chironk, LM-KBC 2026).

    Across sources, each has one vote, for every object that it kept or for nothing; scores are shares of the sources
    that were heard, so that a cut-off at 0.6 asks for two of three, for both of two, and for the one. each: sources
    with a rule of their own. What names no source is one.
    """

    name: ClassVar[str] = "two-stage"
    within: Rule
    across: Rule
    each: Mapping[str, Rule] = field(default_factory=dict)

    def select(self, candidates: CandidateSet) -> Prediction:
        """Keep what `across` keeps of the sources' selections. A query that no model answered stays failed."""
        heard = sources(candidates)
        if candidates.failed or not heard:
            return self.within.select(candidates)
        kept = {source: self.each.get(source, self.within).select(own(candidates, source)) for source in heard}
        return self.across.select(_votes(candidates, kept))


def _votes(candidates: CandidateSet, kept: Mapping[str, Prediction]) -> CandidateSet:
    """One vote per source, as a pooled set; numbers that a source made up of its votes are objects like others."""
    scores = {candidate.text: candidate.score for candidate in candidates.candidates}
    ballots: dict[str, list[str]] = {}
    objects: dict[str, Candidate] = {}
    for source, prediction in kept.items():
        for candidate in prediction.objects:
            ballots.setdefault(candidate.text, []).append(source)
            objects.setdefault(candidate.text, candidate)
    voted = [structs.replace(objects[text], **_share(for_it, len(kept))) for text, for_it in ballots.items()]
    voted.sort(key=lambda candidate: (-candidate.score, -scores.get(candidate.text, 0.0), candidate.text))
    silent = [source for source, prediction in kept.items() if not prediction.objects]
    return CandidateSet(
        candidates.query,
        tuple(voted),
        tuple(State.ABSTAINED if source in silent else State.ANSWERED for source in kept),
        nothing=(Nil(**_share(silent, len(kept))),) if silent else (),
        nil_probabilities=candidates.nil_probabilities,
    )


def _share(votes: list[str], heard: int) -> dict[str, Any]:
    return {
        "score": len(votes) / heard,
        "sources": tuple(Source(source) for source in votes),
        "by_model": tuple((source, 1.0) for source in votes),
    }
