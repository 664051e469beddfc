"""Choose examples by a hash of the query, and select across the sources' selections (Chironk, LM-KBC 2026)."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import islice
from typing import Any, ClassVar, Literal

from msgspec import structs

from lmkbc.ask.examples import Shots
from lmkbc.select.composed import of_source, sources
from lmkbc.select.rule import Rule
from lmkbc.types import Candidate, CandidateSet, Example, Nil, Prediction, Query, Source, State


@dataclass(frozen=True, kw_only=True)
class TwoStage(Rule):
    """Select `within` the proposals of each source, then `across` the selections (Chironk, LM-KBC 2026).

    In the second stage each source has one vote for every object that it kept, or for NIL. Scores are shares of the
    sources that propose anything. For example, a cut-off at 0.6 requires two of three sources, two of two, or one of
    one. ties: order of a source's candidates with equal scores: the better one in the
    pool, or the one of the earlier draw.
    """

    name: ClassVar[str] = "chironk26/two-stage"
    within: Rule
    across: Rule
    ties: Literal["pool", "draw"] = "pool"

    def select(self, candidates: CandidateSet) -> Prediction:
        """Return what `across` keeps of the sources' selections. A query that no model answered stays failed."""
        present = sources(candidates)
        if candidates.failed or not present:
            return self.within.select(candidates)
        kept = {source: self._selected(candidates, source) for source in present}
        return self.across.select(_votes(candidates, kept))

    def _selected(self, candidates: CandidateSet, source: str) -> Prediction:
        """Return the selection of one source."""
        proposed = of_source(candidates, source)
        if self.ties == "draw":
            order = sorted(proposed.candidates, key=lambda one: (-one.score, _first_draw(one, source)))
            proposed = replace(proposed, candidates=tuple(order))
        return self.within.select(proposed)


def _first_draw(candidate: Candidate, source: str) -> int:
    """Return the number of the source's earliest draw that proposes a candidate; 0 if draws have no numbers."""
    draws = (one.draw for one in candidate.sources if one.model == source)
    return min((int(draw) for draw in draws if draw.isdecimal()), default=0)


def _votes(candidates: CandidateSet, kept: Mapping[str, Prediction]) -> CandidateSet:
    """Return the sources' votes as a pooled set. A number between a source's votes is an object like others."""
    scores = {candidate.text: candidate.score for candidate in candidates.candidates}
    voters: dict[str, list[str]] = {}
    objects: dict[str, Candidate] = {}
    for source, prediction in kept.items():
        for candidate in prediction.objects:
            voters.setdefault(candidate.text, []).append(source)
            objects.setdefault(candidate.text, candidate)
    voted = [structs.replace(objects[text], **_share(names, len(kept))) for text, names in voters.items()]
    voted.sort(key=lambda candidate: (-candidate.score, -scores.get(candidate.text, 0.0), candidate.text))
    empty = [source for source, prediction in kept.items() if not prediction.objects]
    return CandidateSet(
        candidates.query,
        tuple(voted),
        tuple(State.ABSTAINED if source in empty else State.ANSWERED for source in kept),
        nothing=(Nil(**_share(empty, len(kept))),) if empty else (),
        nil_probabilities=candidates.nil_probabilities,
    )


def _share(votes: list[str], sources: int) -> dict[str, Any]:
    return {
        "score": len(votes) / sources,
        "sources": tuple(Source(source) for source in votes),
        "by_model": tuple((source, 1.0) for source in votes),
    }


@dataclass(frozen=True, kw_only=True)
class HashedShots(Shots):
    """Examples whose choice depends on the SHA-256 of seed, subject and relation; no subject is shown twice."""

    REPLACES: ClassVar[tuple[str, ...]] = ("draw",)

    seed: int = 0

    def chosen(self, query: Query, free: Iterable[Example]) -> list[Example]:
        """Return the first k examples of different subjects."""
        pool = [*free]
        text = "\x1f".join(("shots", str(self.seed), query.subject, query.relation))
        random.Random(int.from_bytes(sha256(text.encode()).digest()[:8])).shuffle(pool)
        first: dict[str, Example] = {}
        for example in pool:
            first.setdefault(example.query.subject, example)
        return [*islice(first.values(), self.k)]


COMPONENTS = {TwoStage.name: TwoStage, "chironk26/shots": HashedShots}
