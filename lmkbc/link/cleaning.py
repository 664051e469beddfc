"""Removes candidates of the wrong type, if an index knows the type of a name (Yang et al. 2023: category filter).

A candidate is kept if the index lacks its name, or lacks the classes of its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lmkbc.answer.clean import SUBJECT, same_name
from lmkbc.errors import InputError
from lmkbc.link.disambiguation import bundled, is_page
from lmkbc.link.index import AliasIndex
from lmkbc.relation import Relation
from lmkbc.run.run import Run
from lmkbc.types import Candidate, CandidateSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaning:
    """A recipe's table `clean`.

    types: whether to drop objects that the index knows only as entities of other types.
    spellings: spelling -> canonical name, in place of those in the relations' modules.
    subject: whether to drop the query's own subject, by QID or else by name, for relations where a subject is never its
    own object.
    stop: names (in any case) and QIDs that are never an object.
    """

    types: bool = False
    spellings: Mapping[str, str] | None = None
    subject: bool = True
    stop: tuple[str, ...] = ()

    def kept(self, candidates: CandidateSet, relation: Relation) -> CandidateSet:
        """Return a linked set without stop words and, if so set, without the query's subject."""
        never = {name.casefold() for name in self.stop}
        if never:
            candidates = candidates.without(
                lambda candidate: (
                    not never.isdisjoint((candidate.text.casefold(), (candidate.id or candidate.text).casefold()))
                ),
                "stop",
            )
        return without_subject(candidates, relation) if self.subject else candidates

    def open(self, run: Run) -> TypeFilter | None:
        """Return the filter, None if the table asks for none. InputError if it needs an index and the run has none."""
        if not self.types:
            return None
        if run.index is None:
            raise InputError(
                "the recipe drops objects of another kind, which needs an index: name one with --index "
                "('lmkbc link build' makes it), or set clean.types = false in the recipe"
            )
        return TypeFilter(run.relations, AliasIndex(run.index))


def without_subject(candidates: CandidateSet, relation: Relation) -> CandidateSet:
    """Return the set without the query's own subject, unless a subject may be its own object.

    QIDs are compared. Names are compared if the query or the candidate has no QID.
    """
    query = candidates.query
    if relation.shape.may_be_subject or relation.kind != "entity":
        return candidates

    def is_subject(candidate: Candidate) -> bool:
        if query.subject_id and candidate.id:
            return candidate.id == query.subject_id
        return same_name(candidate.text, query.subject)

    return candidates.without(is_subject, SUBJECT)


class TypeFilter:
    """Keeps candidates that may have the relation's object type. relations: relations by every spelling in queries."""

    def __init__(self, relations: Mapping[str, Relation], index: AliasIndex) -> None:
        self._relations, self._index = relations, index
        self._fits: dict[tuple[str, str], bool] = {}

    def keep(self, candidates: CandidateSet) -> CandidateSet:
        """Return the set without candidates that the index knows only as entities of other types."""
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
        """Return whether an entity may have a type by its classes in the index; without an id, look up the name."""
        entity = self._index.entities([qid]).get(qid) if qid else None
        hits = [entity] if entity else self._index.exact(text) if text else ()
        classes = [hit.classes for hit in hits if entity or not is_page(hit)]
        return not classes or any(not known_as or bundled().fits(known_as, wanted) for known_as in classes)
