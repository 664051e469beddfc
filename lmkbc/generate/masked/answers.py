"""Candidates from a masked model's scores, asked or recorded: limits, cleaning, merged clozes, NIL probabilities.

Scores of a model that is asked now and recorded scores are read alike. In a recorded row each source is a cloze. The
object "" with the source "veto" tells how probable the preconditions made it that there is no object; the other scores
of such a row are those before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmkbc.edition import Edition
from lmkbc.generate.masked.cleaning import AnswerCleaning
from lmkbc.generate.masked.ensemble import Scores, combine
from lmkbc.generate.masked.lexicon import TOP_K
from lmkbc.generate.masked.settings import ProbeSettings, for_relation
from lmkbc.generate.recorded_rows import RecordedRow
from lmkbc.groups import grouped
from lmkbc.relation import Relation
from lmkbc.scoring.matchers import number
from lmkbc.types import Candidate, CandidateSet, Example, Query, Source

VETO = "veto"
"""Source of the NIL probability that preconditions give."""


def origins(train: Sequence[Example], edition: Edition) -> dict[str, dict[str, list[Query]]]:
    """Return relation -> object of its train rows -> the queries with it."""
    rows = grouped((row.query.relation, row) for row in train)
    return {
        relation: grouped((name, row.query) for row in rows.get(relation, ()) for name in row.names)
        for relation in edition.relations
    }


class ClozeAnswers:
    """Reads scores as a recipe's table `probe` says. origins: see `AnswerCleaning`."""

    def __init__(
        self,
        probe: ProbeSettings,
        edition: Edition,
        relations: Mapping[str, Relation],
        origins: Mapping[str, Mapping[str, Sequence[Query]]],
    ) -> None:
        self._probe, self._relations = probe, relations
        self.cleaning = AnswerCleaning(probe, edition, relations, origins)

    def best(self, relation: Relation, scores: Scores) -> dict[str, float]:
        """Return the answers of one cloze that `top_k` and `min_prob` leave. scores: best first."""
        least: float = for_relation(self._probe.min_prob, relation, 0.0)
        top_k: int = for_relation(self._probe.top_k, relation, TOP_K)
        return {name: score for name, score in list(scores.items())[:top_k] if score > least}

    def merged(
        self,
        query: Query,
        proposals: Mapping[str, Scores],
        vetoed: float,
        model: str,
        ids: Mapping[str, str] | None = None,
    ) -> CandidateSet:
        """Return the candidates of a query, best first.

        proposals: per cloze, the cleaned answers with their scores. vetoed: NIL probability of the preconditions; it
        scales all scores, and proposes to answer nothing. ids: of objects that are linked already.
        """
        scores = combine([*proposals.values()], self._probe.ensemble)
        named = self.cleaning.named_in(query)
        candidates = []
        for name in {**scores, **named} if vetoed < 1 else ():
            score = min(max(scores.get(name, 0.0), named.get(name, 0.0)), 1.0)
            sources = [Source(model, cloze) for cloze, proposed in proposals.items() if name in proposed]
            sources += [Source(model, "name")] if name in named else []
            candidates.append(Candidate(name, score * (1 - vetoed), tuple(sources), (ids or {}).get(name)))
        candidates.sort(key=lambda candidate: -candidate.score)
        if vetoed:
            candidates.append(Candidate("", vetoed, (Source(model, VETO),)))
        return CandidateSet.proposing(query, candidates)

    def of_row(self, query: Query, row: RecordedRow, model: str, relation: Relation, **_: Any) -> CandidateSet:
        """Return the candidates of a recorded row of scores.

        An object that has an id is no spelling left to clean, except a number.
        """
        by_cloze: dict[str, dict[str, float]] = {}
        ids: dict[str, str] = {}
        vetoed = 0.0
        for given in sorted(row.candidates or (), key=lambda candidate: -candidate.score):
            if given.source == VETO and not given.object:
                vetoed = given.score
                continue
            by_cloze.setdefault(given.source or "", {}).setdefault(given.object, given.score)
            if given.id and given.object and (relation.kind != "number" or number(given.id) is not None):
                ids.setdefault(given.object, given.id)
        proposals = {
            cloze: self.cleaning.kept(query, self.best(relation, scores), linked=ids)
            for cloze, scores in by_cloze.items()
        }
        return self.merged(query, proposals or {"": {}}, vetoed, model, ids)
