"""Cleaning of linked candidates: stop words, the query's own subject, names of another shape, and wrong types.

The type of a name is known from an index (Yang et al. 2023: category filter). A candidate is kept if the index lacks
its name, or lacks the classes of its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from lmkbc.answer.clean import SUBJECT, same_name
from lmkbc.errors import InputError, refuse
from lmkbc.generate.spec import check_names
from lmkbc.link.hits import bundled, is_page
from lmkbc.link.index import AliasIndex
from lmkbc.names import folded_key
from lmkbc.relation import Relation
from lmkbc.session.run import Run
from lmkbc.types import Candidate, CandidateSet


@dataclass(frozen=True, slots=True, kw_only=True)
class NameShape:
    """The shape of objects' names: others are dropped, such as sentences in a list of people.

    only: relations to which it applies, of those whose objects are entities; () for all.
    shortest, longest, words: fewest and most characters, and most words; None for no bound.
    capital: whether the "name" or each of its "words" begins with a capital letter or with a sign that has no case.
    digits: whether it may hold a digit.
    without: words, in any case, that it never holds.
    """

    only: tuple[str, ...] = ()
    shortest: int = 1
    longest: int | None = None
    words: int | None = None
    capital: Literal["", "name", "words"] = ""
    digits: bool = True
    without: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError for bounds that no name is within."""
        most = [bound for bound in (self.longest, self.words) if bound is not None]
        refuse((min([self.shortest, *most]) < 1, "shortest, longest and words are at least 1"))

    def applies(self, relation: Relation) -> bool:
        """Return whether a relation's objects must have the shape."""
        return relation.has_entities() and relation.is_in(self.only)

    def fits(self, name: str) -> bool:
        """Return whether a name has the shape."""
        words = name.split()
        capitals = words if self.capital == "words" else words[:1] if self.capital else []
        return (
            self.shortest <= len(name) <= (self.longest or len(name))
            and len(words) <= (self.words or len(words))
            and not any(word[0].islower() for word in capitals)
            and (self.digits or not any(map(str.isdigit, name)))
            and set(map(folded_key, self.without)).isdisjoint(folded_key(name).split())
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaning:
    """A recipe's table `clean`.

    types: whether to drop objects that the index knows only as entities of other types.
    spellings: spelling -> canonical name, in place of those in the relations' modules.
    subject: whether to drop the query's own subject, by QID or else by name, for relations where a subject is never its
    own object.
    stop: names (in any case) and QIDs that are never an object.
    shape: the shape of names.
    """

    types: bool = False
    spellings: Mapping[str, str] | None = None
    subject: bool = True
    stop: tuple[str, ...] = ()
    shape: NameShape | None = None

    def check(self, relations: Mapping[str, Relation]) -> None:
        """Raise InputError for an unknown relation."""
        check_names(self.shape.only if self.shape else (), relations, "clean.shape.only")

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
        if (shape := self.shape) and shape.applies(relation):
            candidates = candidates.without(lambda candidate: not shape.fits(candidate.text), "name shape")
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
    if relation.shape.may_be_subject or not relation.has_entities():
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
        if not relation.has_entities() or wanted not in bundled().types:
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
