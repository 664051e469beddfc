"""Candidates from a masked model's scores, live or recorded: limits, cleaning, merged clozes, NIL probabilities.

Live and recorded scores are read in the same way. In a recorded row each source is a cloze. The object "" with the
source "veto" holds the preconditions' probability of no object. The other scores of the row do not include it. Clozes
are merged by mean, by maximum, or by number of votes (Ning and Celebi 2022).
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache

from msgspec import structs

from lmkbc.answer.clean import is_subject
from lmkbc.edition import Edition
from lmkbc.generate.recorded_candidates import is_linked
from lmkbc.generate.recorded_rows import CandidateRow, RecordedRow
from lmkbc.masked.cloze_settings import TOP_K, Ensemble, ProbeSettings, for_relation
from lmkbc.relation import Relation
from lmkbc.types import Candidate, CandidateSet, Example, Query, Source, grouped

Scores = Mapping[str, float]
Origins = Mapping[str, Mapping[str, Sequence[Query]]]
"""Relation -> object of its train rows -> queries with this object."""


def origins_of(train: Iterable[Example], edition: Edition) -> Origins:
    """Return the queries behind each object of a train split."""
    rows = grouped((row.query.relation, row) for row in train)
    return {
        relation: grouped((name, row.query) for row in rows[relation] for name in row.names)
        for relation in edition.relations
    }


class ClozeAnswers:
    """Reads scores as a recipe's table `probe` says, and keeps the answers that may be objects."""

    def __init__(
        self,
        probe: ProbeSettings,
        edition: Edition,
        relations: Mapping[str, Relation],
        origins: Origins,
    ) -> None:
        self._probe, self._edition, self._relations, self._origins = probe, edition, relations, origins
        for relation in relations.values():
            probe.check(relation)
        self._names = cache(self._looked_up)

    def kept(self, query: Query, scores: Scores, linked: Container[str] = ()) -> dict[str, float]:
        """Return the scores by object, "" for NIL. Names that only the query's own train row holds are left out.

        linked: names with an id, which are not cleaned.
        """
        relation, null = self._relations[query.relation], self._probe.null
        kept: dict[str, float] = {}
        for name, score in scores.items():
            forms: Iterable[str]
            if not name or name == null:
                forms = ("",) if relation.nullable(self._edition.name) else ()
            elif not self._known(name, query):
                forms = ()
            else:
                forms = self._cleaned(name, query) if self._probe.clean and name not in linked else (name,)
            for form in forms:
                kept[form] = kept.get(form, 0.0) + score
        return self._probe.weighed(kept, scores)

    def _cleaned(self, name: str, query: Query) -> list[str]:
        relation = self._relations[query.relation]
        return [form for form in self._names(name, query.relation) if not is_subject(form, relation, query.subject)]

    def _looked_up(self, word: str, spelling: str) -> tuple[str, ...]:
        return self._probe.objects_of(word, self._relations[spelling])

    def _known(self, name: str, query: Query) -> bool:
        """Return whether a name of the train vocabulary occurs with another subject."""
        if self._probe.vocabulary != "train":
            return True
        return any(not _same_subject(origin, query) for origin in self._origins[query.relation].get(name, ()))

    def best(self, relation: Relation, scores: Scores) -> dict[str, float]:
        """Return the answers of one cloze that pass `top_k` and `min_prob`. scores: best first."""
        least: float = for_relation(self._probe.min_prob, relation, 0.0)
        top_k: int = for_relation(self._probe.top_k, relation, TOP_K)
        return {name: score for name, score in list(scores.items())[:top_k] if score > least}

    def merged(self, query: Query, proposals: Mapping[str, Scores], vetoed: float, model: str) -> CandidateSet:
        """Return the candidates of a query, best first.

        proposals: cloze -> cleaned answers with their scores. vetoed: NIL probability of the preconditions; it scales
        all scores, and becomes the score of NIL.
        """
        scores = combine([*proposals.values()], self._probe.ensemble)
        named = self._probe.named_in(query.subject, self._relations[query.relation])
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
            cloze: self.kept(query, self.best(relation, scores), linked=linked) for cloze, scores in by_cloze.items()
        }
        found = self.merged(query, proposals or {"": {}}, vetoed, model)
        judged = {name: given.verification for name, given in known.items()}
        candidates = (
            structs.replace(one, id=linked.get(one.text), verification=judged.get(one.text)) for one in found.candidates
        )
        return replace(found, candidates=tuple(candidates))


def _same_subject(query: Query, other: Query) -> bool:
    return query.subject == other.subject or (query.subject_id is not None and query.subject_id == other.subject_id)


VETO = "veto"
"""Source of the NIL probability from preconditions."""


def combine(proposals: Sequence[Scores], method: Ensemble) -> dict[str, float]:
    """Return object -> score in [0, 1], best first.

    proposals: one mapping of objects to probabilities per cloze. method: "mean", where a cloze without the object
    counts 0; "max", the best score; or "count", by number of clozes, then by best score: (number - 1 + best) / all.
    """
    merged: dict[str, float] = {}
    for name in dict.fromkeys(name for scores in proposals for name in scores):
        proposed = [scores[name] for scores in proposals if name in scores]
        if method == "mean":
            merged[name] = math.fsum(1 / len(proposals) * score for score in proposed)
        elif method == "max":
            merged[name] = max(proposed)
        else:
            merged[name] = (len(proposed) - 1 + max(proposed)) / len(proposals)
    return dict(sorted(merged.items(), key=lambda item: (-item[1], item[0])))
