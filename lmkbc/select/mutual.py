"""Both sides of a pair as evidence, such as "A borders B" and "B borders A", if both A and B are queried.

A symmetric relation, or one with an inverse, states each fact twice. If both subjects are queried, the two queries are
two draws of one fact, and its score is their mean, as in pooling. Only candidates are read here, not the gold of
queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from msgspec import structs

from lmkbc.names import folded_key
from lmkbc.select.rule import Rule
from lmkbc.types import Candidate, CandidateSet, Prediction, Query


@dataclass(frozen=True, kw_only=True)
class Mutual(Rule):
    """Select as `inner` does, with each score replaced by the mean of both sides, if both are queried.

    inverse: relation of the other side, as in queries; "" for the relation itself, which is symmetric. `read` computes
    the means (see `both_sides`); `select` alone has no other side.
    """

    name: ClassVar[str] = "mutual"
    reads_others: ClassVar[bool] = True
    inner: Rule
    inverse: str = ""

    def read(self, sets: Sequence[CandidateSet], every: Sequence[CandidateSet]) -> Sequence[CandidateSet]:
        """Return the sets with the mean of both sides."""
        return both_sides(sets, every, self.inverse)

    def select(self, candidates: CandidateSet) -> Prediction:
        """Return the selection of the inner rule."""
        return self.inner.select(candidates)

    def select_all(self, sets: Sequence[CandidateSet]) -> list[Prediction]:
        """Return the selection of the inner rule for each query."""
        return self.inner.select_all(sets)


class AskedSides:
    """Index of answered queries by the QID or name of their subject."""

    def __init__(self, sets: Iterable[CandidateSet]) -> None:
        self.sets = {found.query: found for found in sets if not found.failed}
        self._by_id: dict[tuple[str, str], Query] = {}
        self._by_name: dict[tuple[str, str], Query | None] = {}
        for query in self.sets:
            if query.subject_id:
                self._by_id.setdefault((query.relation, query.subject_id), query)
            name = query.relation, folded_key(query.subject)
            self._by_name[name] = None if name in self._by_name else query  # ambiguous: the name of two subjects

    def find(self, relation: str, candidate: Candidate) -> Query | None:
        """Return the query about a candidate: by QID if both have one, else by folded name; None if there is none."""
        if candidate.id and (query := self._by_id.get((relation, candidate.id))):
            return query
        query = self._by_name.get((relation, folded_key(candidate.text)))
        return None if query is None or (candidate.id and query.subject_id) else query


Combine = Callable[[Candidate, Candidate | None], Candidate]
"""Combines a candidate with the other side's candidate of the same pair; None if the other side does not name it."""


def mean(one: Candidate, other: Candidate | None) -> Candidate:
    """Return a candidate with the mean scores of both sides, overall and per model; None counts 0.

    A score from a train row counts for each model, since it comes from none.
    """
    if other is None:
        halves = tuple((model, score / 2) for model, score in one.by_model)
        return structs.replace(one, score=one.score / 2, by_model=halves)
    mine = dict(one.by_model)
    theirs = dict(other.by_model) or dict.fromkeys(mine, other.score)
    by_model = tuple((name, (mine.get(name, 0.0) + theirs.get(name, 0.0)) / 2) for name in sorted({*mine, *theirs}))
    sources = tuple(sorted({*one.sources, *other.sources}))
    return structs.replace(one, score=(one.score + other.score) / 2, sources=sources, by_model=by_model)


def both_sides(
    sets: Sequence[CandidateSet], every: Sequence[CandidateSet], inverse: str = "", combine: Combine = mean
) -> Sequence[CandidateSet]:
    """Return sets in which a pair's candidates of both sides are combined, if both were queried.

    A subject that names this one, and is not named here, becomes a candidate with score 0, which is then combined.
    every: all sets of the run. inverse: relation of the other side; "" for a set's own. Sets without another side stay
    the same.
    """
    own, asked = AskedSides(sets), AskedSides(every)
    names: dict[Query, dict[Query, Candidate]] = {}  # subject -> the queries that name it, with the candidate
    relations = {query.relation for query in own.sets}
    for other, found in asked.sets.items():
        for relation in relations if inverse == other.relation else {other.relation} if not inverse else ():
            for candidate in found.candidates:
                if (query := own.find(relation, candidate)) is not None and query != other:
                    names.setdefault(query, {}).setdefault(other, candidate)
    return [_combined(found, asked, names.get(found.query, {}), inverse, combine) for found in sets]


def _combined(
    found: CandidateSet, asked: AskedSides, naming: dict[Query, Candidate], inverse: str, combine: Combine
) -> CandidateSet:
    """Return a set with both sides combined. naming: queries that name its subject, with the candidate."""
    if found.failed:
        return found
    made: list[Candidate] = []
    met = set[Query]()
    for one in found.candidates:
        other = asked.find(inverse or found.query.relation, one)
        if other is None or other == found.query or other in met:
            made.append(one)
        else:
            met.add(other)
            made.append(combine(one, naming.get(other)))
    for other, candidate in naming.items():
        if other not in met and candidate.score > 0:
            named = structs.replace(candidate, text=other.subject, id=other.subject_id or None)
            made.append(combine(structs.replace(named, score=0.0, by_model=()), candidate))
    if not met and len(made) == len(found.candidates):
        return found
    made.sort(key=lambda one: (-one.score, -len(one.sources), one.text, one.id or ""))
    return replace(found, candidates=tuple(made))
