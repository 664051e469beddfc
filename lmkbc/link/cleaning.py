"""Drops candidates of the wrong type, where an index knows what a name stands for (Yang et al. 2023: category filter).

A name that the index does not hold, or holds without classes, is kept: not to know is no evidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lmkbc.answer.clean import SUBJECT, same_name
from lmkbc.errors import InputError
from lmkbc.link.index import AliasIndex
from lmkbc.link.object_types import bundled
from lmkbc.relation import Relation
from lmkbc.run.base import Run
from lmkbc.types import Candidate, CandidateSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaning:
    """A recipe's table `clean`. types: drop objects that an index knows only as things of other kinds.

    spellings: spelling -> the name that it stands for, in place of those that the relations' modules list.
    subject: drop the query's own subject, by QID or else by name, where none is its own object. stop: names, case
    aside, and QIDs that are never an object, whatever a model means by them.
    """

    types: bool = False
    spellings: Mapping[str, str] | None = None
    subject: bool = True
    stop: tuple[str, ...] = ()

    def kept(self, candidates: CandidateSet, relation: Relation) -> CandidateSet:
        """Return a linked set without what is never kept."""
        never = {name.casefold() for name in self.stop}
        if never:
            candidates = candidates.without(
                lambda one: not never.isdisjoint((one.text.casefold(), (one.id or one.text).casefold())), "stop"
            )
        return without_subject(candidates, relation) if self.subject else candidates

    def open(self, run: Run) -> TypeFilter | None:
        """Return the filter, None if the table wants none. InputError where it is wanted and the run has no index."""
        if not self.types:
            return None
        if run.index is None:
            raise InputError(
                "the recipe drops objects of another kind, which an index tells: name one with --index "
                "('lmkbc link build' makes it), or set clean.types = false in the recipe"
            )
        return TypeFilter(run.relations, AliasIndex(run.index))


def without_subject(candidates: CandidateSet, relation: Relation) -> CandidateSet:
    """Return the set without the query's own subject, where no subject is its own object.

    QIDs decide. Names do where the query or the candidate has no QID.
    """
    query = candidates.query
    if relation.shape.may_be_subject or relation.kind == "number":
        return candidates

    def is_subject(candidate: Candidate) -> bool:
        if query.subject_id and candidate.id:
            return candidate.id == query.subject_id
        return same_name(candidate.text, query.subject)

    return candidates.without(is_subject, SUBJECT)


class TypeFilter:
    """Keeps candidates that may be of the relation's object type. relations: by every spelling that queries use."""

    def __init__(self, relations: Mapping[str, Relation], index: AliasIndex) -> None:
        self._relations, self._index = relations, index
        self._fits: dict[tuple[str, str], bool] = {}

    def keep(self, candidates: CandidateSet) -> CandidateSet:
        """Return the set without candidates that the index knows only as things of other kinds."""
        relation = self._relations[candidates.query.relation]
        wanted = relation.object_type.qid
        if relation.kind != "entity" or wanted not in bundled().types:
            return candidates
        return candidates.without(lambda candidate: not self._may_be(candidate, wanted), "type")

    def _may_be(self, candidate: Candidate, wanted: str) -> bool:
        key = candidate.id or candidate.text, wanted
        if key not in self._fits:
            self._fits[key] = self._looked_up(candidate.id, candidate.text, wanted)
        return self._fits[key]

    def _looked_up(self, qid: str | None, text: str, wanted: str) -> bool:
        """Return whether what the index knows of an entity, else of the name, may be of a type."""
        known = self._index.entities([qid]).get(qid) if qid else None
        classes = [hit.classes for hit in ([known] if known else self._index.exact(text) if text else ())]
        return not classes or any(not own or bundled().fits(own, wanted) for own in classes)
