"""Both sides of a pair as evidence, such as "A borders B" and "B borders A", where both are queried, or train has one.

A symmetric relation, or one with an inverse, states each fact twice. If both subjects are queried, the two queries are
two draws of one fact, and its score is their mean, as in pooling. Only candidates are read here, not the gold of
queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from msgspec import structs

from lmkbc.names import folded_key
from lmkbc.relation import Relation
from lmkbc.select.rule import Rule
from lmkbc.types import Candidate, CandidateSet, Example, Prediction, Query, Source, grouped


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

    def combined(self, one: Candidate, other: Candidate | None) -> Candidate:
        """Return a candidate with the probability that this side has its fact, by Bayes' rule.

        one: its score is the probability without the other side's row. other: how that row names it; None if it does
        not.
        """
        if_true, if_false = (self.there, self.chance) if other else (1 - self.there, 1 - self.chance)

        def updated(score: float) -> float:
            true = min(max(score / self.here, self.rate), 1 - self.rate)
            return self.here * true * if_true / (true * if_true + (1 - true) * if_false)

        by_model = tuple((name, updated(score)) for name, score in one.by_model)
        sources = tuple(sorted({*one.sources, *(other.sources if other else ())}))
        return structs.replace(one, score=updated(one.score), sources=sources, by_model=by_model)


class TrainSides:
    """Facts that train states from the other side.

    For example, Peru's row has Chile but not Cuba, so Chile borders Peru and Cuba does not. labelled: split -> the rows
    to learn from; the split is a source of what its rows state. relations: by the edition's spelling.
    """

    def __init__(self, labelled: Mapping[str, Sequence[Example]], relations: Mapping[str, Relation]) -> None:
        spelled = {relation.name: name for name, relation in relations.items()}
        rows = grouped((row.query.relation, _stated(row, split)) for split, own in labelled.items() for row in own)
        self._sides = {
            name: (spelled[other], rows[spelled[other]], _Agreement.of(rows.get(name, []), rows[spelled[other]]))
            for name, relation in relations.items()
            if (other := relation.other_side()) in spelled and spelled[other] in rows
        }

    def read(self, sets: Sequence[CandidateSet]) -> Sequence[CandidateSet]:
        """Return sets in which a pair with a row of train has the probability that `_Agreement` gives it."""
        made = dict(enumerate(sets))
        for name, places in grouped((one.query.relation, place) for place, one in enumerate(sets)).items():
            if name in self._sides:
                other, rows, agreement = self._sides[name]
                inverse = "" if other == name else other
                read = both_sides([sets[place] for place in places], rows, inverse, agreement.combined)
                made.update(zip(places, read, strict=True))
        return [*made.values()]


def _pairs(rows: Sequence[CandidateSet], others: Sequence[CandidateSet]) -> Iterator[tuple[Query, Query]]:
    """Yield the queries of a row and of the other side's row, for each object of a row that has one."""
    asked = AskedSides(others)
    for row in rows if others else ():
        for candidate in row.candidates:
            found = asked.find(others[0].query.relation, candidate)
            if found is not None and found != row.query:
                yield row.query, found


def _stated(row: Example, split: str) -> CandidateSet:
    """Return the objects of a labelled row as candidates, with all their names, since a query may use any of them."""
    named = [(text, gold.id) for gold in row.objects for text in gold.names or (gold.id or "",)]
    return CandidateSet(row.query, tuple(Candidate(text, 1.0, (Source(split),), id_) for text, id_ in named))
