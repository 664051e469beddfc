"""Candidates from a masked model's scores, live or recorded: limits, cleaning, merged clozes, NIL probabilities.

Live and recorded scores are read in the same way. In a recorded row each source is a cloze. The object "" with the
source "veto" holds the preconditions' probability of no object. The other scores of the row do not include it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from msgspec import structs

from lmkbc.generate.masked.cleaning import AnswerCleaning
from lmkbc.generate.masked.ensemble import Scores, combine
from lmkbc.generate.masked.lexicon import TOP_K
from lmkbc.generate.masked.settings import ProbeSettings, for_relation
from lmkbc.generate.recorded_rows import CandidateRow, RecordedRow, is_linked
from lmkbc.relation import Relation
from lmkbc.types import Candidate, CandidateSet, Query, Source

VETO = "veto"
"""Source of the NIL probability from preconditions."""


@dataclass(frozen=True)
class ClozeAnswers:
    """Reads scores as a recipe's table `probe` says. cleaning: brings names into the relation's shape."""

    probe: ProbeSettings
    cleaning: AnswerCleaning

    def best(self, relation: Relation, scores: Scores) -> dict[str, float]:
        """Return the answers of one cloze that pass `top_k` and `min_prob`. scores: best first."""
        least: float = for_relation(self.probe.min_prob, relation, 0.0)
        top_k: int = for_relation(self.probe.top_k, relation, TOP_K)
        return {name: score for name, score in list(scores.items())[:top_k] if score > least}

    def merged(self, query: Query, proposals: Mapping[str, Scores], vetoed: float, model: str) -> CandidateSet:
        """Return the candidates of a query, best first.

        proposals: cloze -> cleaned answers with their scores. vetoed: NIL probability of the preconditions; it scales
        all scores, and becomes the score of NIL.
        """
        scores = combine([*proposals.values()], self.probe.ensemble)
        named = self.cleaning.named_in(query)
        candidates = []
        for name in {**scores, **named} if vetoed < 1 else ():
            score = min(max(scores.get(name, 0.0), named.get(name, 0.0)), 1.0)
            sources = [Source(model, cloze) for cloze, proposed in proposals.items() if name in proposed]
            sources += [Source(model, "name")] if name in named else []
            candidates.append(Candidate(name, score * (1 - vetoed), tuple(sources)))
        candidates.sort(key=lambda candidate: -candidate.score)
        if vetoed:
            candidates.append(Candidate("", vetoed, (Source(model, VETO),)))
        return CandidateSet.proposing(query, candidates)

    def of_row(self, query: Query, row: RecordedRow, model: str, relation: Relation) -> CandidateSet:
        """Return the candidates of a recorded row of scores. Names with an id are not cleaned, except numbers."""
        by_cloze: dict[str, dict[str, float]] = {}
        known: dict[str, CandidateRow] = {}
        vetoed = 0.0
        for given in sorted(row.candidates or (), key=lambda candidate: -candidate.score):
            if given.source == VETO and not given.object:
                vetoed = given.score
                continue
            by_cloze.setdefault(given.source or "", {}).setdefault(given.object, given.score)
            known.setdefault(given.object, given)
        linked = {name: given.id for name, given in known.items() if name and is_linked(given, relation)}
        proposals = {
            cloze: self.cleaning.kept(query, self.best(relation, scores), linked=linked)
            for cloze, scores in by_cloze.items()
        }
        found = self.merged(query, proposals or {"": {}}, vetoed, model)
        judged = {name: given.verification for name, given in known.items()}
        candidates = (
            structs.replace(one, id=linked.get(one.text), verification=judged.get(one.text)) for one in found.candidates
        )
        return replace(found, candidates=tuple(candidates))
