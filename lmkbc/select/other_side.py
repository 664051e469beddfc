"""Facts that train states from the other side, such as "B borders A" in B's row, as evidence for A's query.

A symmetric relation, or one with an inverse, states each fact twice. Only rows to learn from are read here, not the
gold of queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from lmkbc.names import name_key
from lmkbc.relation import Relation
from lmkbc.types import Candidate, CandidateSet, Example, Query, Source, grouped


class SubjectIndex:
    """Index of answered sets of one relation by the QID or name of their subject."""

    def __init__(self, sets: Iterable[CandidateSet]) -> None:
        self.sets = {found.query: found for found in sets if not found.failed}
        self._by_id: dict[str, Query] = {}
        self._by_name: dict[str, Query | None] = {}
        for query in self.sets:
            if query.subject_id:
                self._by_id.setdefault(query.subject_id, query)
            name = name_key(query.subject)
            self._by_name[name] = None if name in self._by_name else query  # ambiguous: the name of two subjects

    def find(self, candidate: Candidate) -> Query | None:
        """Return the query about a candidate: by QID if both have one, else by folded name; None if there is none."""
        if candidate.id and (query := self._by_id.get(candidate.id)):
            return query
        query = self._by_name.get(name_key(candidate.text))
        return None if query is None or (candidate.id and query.subject_id) else query


def _updated_sets(
    sets: Sequence[CandidateSet], rows: Sequence[CandidateSet], agreement: _Agreement
) -> Iterator[CandidateSet]:
    """Yield the sets of one relation, with the scores of candidates that have a row of the other side updated.

    A subject of a row that names this one, and is not named here, becomes a candidate with score 0, which is then
    updated.
    """
    own, stated = SubjectIndex(sets), SubjectIndex(rows)
    naming: dict[Query, dict[Query, Candidate]] = {}  # subject -> the rows that name it, with the candidate
    for other, row in stated.sets.items():
        for candidate in row.candidates:
            if (query := own.find(candidate)) is not None and query != other:
                naming.setdefault(query, {}).setdefault(other, candidate)
    for found in sets:
        yield found if found.failed else _updated_set(found, stated, naming.get(found.query, {}), agreement)


def _updated_set(
    found: CandidateSet, stated: SubjectIndex, naming: Mapping[Query, Candidate], agreement: _Agreement
) -> CandidateSet:
    """Return a set with its scores updated. naming: rows that name its subject, with the candidate."""
    made: list[Candidate] = []
    met = set[Query]()
    for one in found.candidates:
        other = stated.find(one)
        if other is None or other == found.query or other in met:
            made.append(one)
        else:
            met.add(other)
            made.append(agreement.updated(one, naming.get(other)))
    for other, candidate in naming.items():
        if other not in met:
            named = structs.replace(candidate, text=other.subject, id=other.subject_id or None)
            made.append(agreement.updated(structs.replace(named, score=0.0, by_model=()), candidate))
    if not met and len(made) == len(found.candidates):
        return found
    made.sort(key=lambda one: (-one.score, -len(one.sources), one.text, one.id or ""))
    return replace(found, candidates=tuple(made))


AGREED, STATED, PAIRS = 9, 10, 100
"""Counted beforehand: this many of so many facts are on both sides, and one of so many pairs is a fact."""


@dataclass(frozen=True)
class _Agreement:
    """How often train's rows of both sides have the same fact.

    Each side has a true fact with some probability, and a false one hardly ever. So what one side states is true, but
    the other side may lack it. here: share of the other side's facts that this side has. there: share of this side's
    facts that the other side has. rate: share of right facts among all pairs of subjects. chance: probability that a
    side states a false fact.
    """

    here: float
    there: float
    rate: float
    chance: float

    @classmethod
    def of(cls, rows: Sequence[CandidateSet], others: Sequence[CandidateSet]) -> _Agreement:
        """Count the pairs of a row and a row of the other side, in addition to those counted beforehand."""
        right = set(_pairs(rows, others))
        stated = {(subject, other) for other, subject in _pairs(others, rows)}
        both = len(right & stated) + AGREED
        same = len({row.query for row in rows} & {row.query for row in others})
        wrong = len(rows) * len(others) - same - len(right)
        return cls(
            here=both / (len(stated) + STATED),
            there=both / (len(right) + STATED),
            rate=(len(right) + 1) / (len(right) + wrong + PAIRS),
            chance=1 / (wrong + PAIRS),
        )

    def updated(self, one: Candidate, other: Candidate | None) -> Candidate:
        """Return a candidate with the probability that this side has its fact, by Bayes' rule.

        one: its score is the probability without the other side's row. other: how that row names it; None if it does
        not.
        """
        if_true, if_false = (self.there, self.chance) if other else (1 - self.there, 1 - self.chance)

        def probability(score: float) -> float:
            true = min(max(score / self.here, self.rate), 1 - self.rate)
            return self.here * true * if_true / (true * if_true + (1 - true) * if_false)

        by_model = tuple((name, probability(score)) for name, score in one.by_model)
        sources = tuple(sorted({*one.sources, *(other.sources if other else ())}))
        return structs.replace(one, score=probability(one.score), sources=sources, by_model=by_model)


class TrainSides:
    """Facts that train states from the other side.

    For example, Peru's row has Chile but not Cuba, so Chile borders Peru and Cuba does not. labelled: split -> the rows
    to learn from; the split is a source of what its rows state. relations: by the edition's spelling.
    """

    def __init__(self, labelled: Mapping[str, Sequence[Example]], relations: Mapping[str, Relation]) -> None:
        spelled = {relation.name: name for name, relation in relations.items()}
        rows = grouped((row.query.relation, _stated(row, split)) for split, own in labelled.items() for row in own)
        self._sides = {
            name: (rows[spelled[other]], _Agreement.of(rows.get(name, []), rows[spelled[other]]))
            for name, relation in relations.items()
            if (other := relation.other_side()) in spelled and spelled[other] in rows
        }

    def read(self, sets: Sequence[CandidateSet]) -> Sequence[CandidateSet]:
        """Return sets in which a pair with a row of train has the probability that `_Agreement` gives it."""
        made = dict(enumerate(sets))
        for name, places in grouped((one.query.relation, place) for place, one in enumerate(sets)).items():
            if name in self._sides:
                made |= zip(places, _updated_sets([sets[place] for place in places], *self._sides[name]), strict=True)
        return [*made.values()]


def _pairs(rows: Sequence[CandidateSet], others: Sequence[CandidateSet]) -> Iterator[tuple[Query, Query]]:
    """Yield the queries of a row and of the other side's row, for each object of a row that has one."""
    asked = SubjectIndex(others)
    for row in rows:
        for candidate in row.candidates:
            found = asked.find(candidate)
            if found is not None and found != row.query:
                yield row.query, found


def _stated(row: Example, split: str) -> CandidateSet:
    """Return the objects of a labelled row as candidates, with all their names, since a query may use any of them."""
    named = [(text, gold.id) for gold in row.objects for text in gold.names or (gold.id or "",)]
    return CandidateSet(row.query, tuple(Candidate(text, 1.0, (Source(split),), id_) for text, id_ in named))
