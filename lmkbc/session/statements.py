"""Facts that labelled rows state: each row its own, and from the other side "A borders B" where B's row has A.

A system that reads such a row needs no model for the fact. So runs and bases count these facts apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from lmkbc.kinds.kind import KnownValue, Match, Stated, kind_of
from lmkbc.names import as_qid, name_key
from lmkbc.relation import Relation
from lmkbc.types import Candidate, Example, GoldObject, Query

_Stated = Mapping[tuple[str, str, str], Mapping[str, None]]
"""(relation, key of the subject, key of the object) -> the splits that state the fact, or QIDs, in order."""


class Statements:
    """The facts that labelled rows state.

    rows: split -> its rows. relations: by the edition's spelling. Two entities are the same if they have one QID. If
    one of them has no QID, they are the same if they have a name in common. Other objects are compared by their kind: a
    row with a day states the year too.
    """

    def __init__(self, rows: Mapping[str, Sequence[Example]], relations: Mapping[str, Relation]) -> None:
        self._rows, self._relations = rows, relations

    def from_other_side(self, query: Query, candidate: Candidate) -> tuple[str, ...]:
        """Return the splits whose rows about the object state the fact; none without an inverse relation."""
        return tuple(dict.fromkeys(self._found(self._other, query, candidate)))

    def stated_by(self, query: Query, candidate: Candidate) -> tuple[str, ...]:
        """Return the splits whose rows state the fact, about its subject or from the other side."""
        relation = self._relations.get(query.relation)
        if relation is not None and not relation.has_entities():
            return tuple(dict.fromkeys(self._valued(query, candidate, relation)))
        splits = (split for stated in (self._own, self._other) for split in self._found(stated, query, candidate))
        return tuple(dict.fromkeys(splits))

    def qid(self, query: Query, candidate: Candidate) -> str | None:
        """Return the QID that rows about a subject have for an object of this name; None without one, or of several."""
        found = {*self._found(self._ids, query, candidate)}
        return found.pop() if len(found) == 1 else None

    @cached_property
    def _ids(self) -> _Stated:
        """Return the QIDs that rows have for the objects of their own subject."""
        return self._of_subjects(lambda _, gold: as_qid(gold.id or ""))

    def _valued(self, query: Query, candidate: Candidate, relation: Relation) -> Iterator[str]:
        """Yield the splits whose rows have a value that is the same, or more exact."""
        kind = kind_of(relation)
        own = kind.literal((candidate.id or "", candidate.text))[0] if kind.has_values else candidate.text
        for subject in _looked_up((query.subject,), query.subject_id) if own else ():
            for split, known in self._values.get((query.relation, subject), ()):
                if kind.compare(own or "", known, relation) in (Match.SAME, Match.COMPATIBLE):
                    yield split

    @cached_property
    def _values(self) -> Mapping[tuple[str, str], Sequence[tuple[str, KnownValue]]]:
        """Return (relation, key of the subject) -> the split and the value of each object that is no entity."""
        made = defaultdict[tuple[str, str], list[tuple[str, KnownValue]]](list)
        for split, row in self._each():
            relation = self._relations[row.query.relation]
            texts = () if relation.has_entities() else [t for gold in row.objects for t in (gold.id, *gold.names) if t]
            for known in filter(None, (kind_of(relation).known(Stated(text), relation) for text in texts)):
                for subject in _subject(row.query):
                    made[row.query.relation, subject].append((split, known))
        return dict(made)

    @cached_property
    def _own(self) -> _Stated:
        """Return the facts that rows state about their own subject."""
        return self._of_subjects(lambda split, _: split)

    def _of_subjects(self, said: Callable[[str, GoldObject], str | None]) -> _Stated:
        """Return what is said of each object of a row, with its own subject; None for nothing."""
        return _indexed(
            (what, row.query.relation, pair)
            for split, row in self._each()
            for gold in row.objects
            if (what := said(split, gold))
            for pair in _pairs(_subject(row.query), _object(gold))
        )

    @cached_property
    def _other(self) -> _Stated:
        """Return the facts that rows state about their objects."""
        spelled = {relation.name: name for name, relation in self._relations.items()}
        turned = defaultdict[str, list[str]](
            list
        )  # relation of a row -> the relations that it states from the other side
        for name, relation in self._relations.items():
            if other := spelled.get(relation.other_side()):
                turned[other].append(name)
        return _indexed(
            (split, name, pair)
            for split, row in self._each()
            for name in turned[row.query.relation]
            for gold in row.objects
            for pair in _pairs(_object(gold), _subject(row.query))
        )

    def _each(self) -> Iterator[tuple[str, Example]]:
        return ((split, row) for split, rows in self._rows.items() for row in rows)

    def _found(self, stated: _Stated, query: Query, candidate: Candidate) -> Iterator[str]:
        relation = self._relations.get(query.relation)
        if relation is None:  # no row is about it
            return
        subject = _looked_up((query.subject,), query.subject_id)
        found = _looked_up((candidate.text,), candidate.id)
        for one in subject:
            for other in found:
                yield from stated.get((query.relation, one, other), ())


def _indexed(facts: Iterable[tuple[str, str, tuple[str, str]]]) -> _Stated:
    made = defaultdict[tuple[str, str, str], dict[str, None]](dict)
    for what, relation, (subject, found) in facts:
        made[relation, subject, found][what] = None
    return dict(made)


def _pairs(subjects: Iterable[str], objects: Sequence[str]) -> Iterator[tuple[str, str]]:
    return ((subject, found) for subject in subjects for found in objects)


def _subject(query: Query) -> list[str]:
    return _keys((query.subject,), query.subject_id)


def _object(gold: GoldObject) -> list[str]:
    return _keys(gold.names, gold.id)


def _keys(names: Iterable[str], qid: str | None) -> list[str]:
    """Return the keys of an entity of a row: its QID, and its names, marked by whether it has a QID."""
    return [*filter(None, (qid,)), *dict.fromkeys(f"{'+' if qid else '-'}{name_key(name)}" for name in names)]


def _looked_up(names: Iterable[str], qid: str | None) -> list[str]:
    """Return the keys by which a run's entity is found: names of an entity with a QID only if it has none itself."""
    if qid:
        return [qid, *("-" + name_key(name) for name in names)]
    return [sign + name_key(name) for sign in "+-" for name in names]
