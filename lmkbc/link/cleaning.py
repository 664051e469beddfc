"""Cleaning of linked candidates: stop words, the query's own subject, and names of another shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from lmkbc.answer.clean import SUBJECT, is_subject
from lmkbc.errors import refuse
from lmkbc.generate.spec import check_names
from lmkbc.relation import Relation
from lmkbc.session.run import Run
from lmkbc.types import Candidate, CandidateSet


@dataclass(frozen=True, slots=True, kw_only=True)
class NameShape:
    """The shape of objects' names: others are dropped, such as sentences in a list of people.

    only: relations to which it applies, of those whose objects are entities; () for all.
    longest, words: most characters, and most words; None for no bound.
    capital: whether the "name" or each of its "words" begins with a capital letter or with a sign that has no case.
    digits: whether it may hold a digit.
    """

    only: tuple[str, ...] = ()
    longest: int | None = None
    words: int | None = None
    capital: Literal["", "name", "words"] = ""
    digits: bool = True

    def __post_init__(self) -> None:
        """Raise ValueError for bounds that no name is within."""
        most = [bound for bound in (self.longest, self.words) if bound is not None]
        refuse((min(most, default=1) < 1, "longest and words are at least 1"))

    def applies(self, relation: Relation) -> bool:
        """Return whether a relation's objects must have the shape."""
        return relation.has_entities() and relation.is_in(self.only)

    def fits(self, name: str) -> bool:
        """Return whether a name has the shape."""
        words = name.split()
        capitals = words if self.capital == "words" else words[:1] if self.capital else []
        return (
            len(name) <= (self.longest or len(name))
            and len(words) <= (self.words or len(words))
            and not any(word[0].islower() for word in capitals)
            and (self.digits or not any(map(str.isdigit, name)))
        )


class Filter(Protocol):
    """Drops objects by what a run has at hand."""

    def keep(self, candidates: CandidateSet) -> CandidateSet:
        """Return the set without the dropped candidates."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaning:
    """A recipe's table `clean`.

    spellings: spelling -> canonical name, in place of those in the relations' modules.
    subject: whether to drop the query's own subject, by QID or else by name, for relations where a subject is never its
    own object.
    stop: names (in any case) and QIDs that are never an object.
    shape: the shape of names.
    """

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

    def open(self, run: Run) -> Filter | None:  # noqa: ARG002 -- subclasses use it
        """Return a further filter of the objects of a run; None if there is none."""
        return None


def without_subject(candidates: CandidateSet, relation: Relation) -> CandidateSet:
    """Return the set without the query's own subject, unless a subject may be its own object.

    QIDs are compared. Names are compared if the query or the candidate has no QID.
    """
    query = candidates.query
    if relation.shape.may_be_subject or not relation.has_entities():
        return candidates

    def is_own(candidate: Candidate) -> bool:
        if query.subject_id and candidate.id:
            return candidate.id == query.subject_id
        return is_subject(candidate.text, relation, query.subject)

    return candidates.without(is_own, SUBJECT)
