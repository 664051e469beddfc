"""Values that pass through the engine: frozen, slotted, picklable, and without behaviour beyond checks."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple, Protocol, TypeVar
from urllib.parse import unquote

import msgspec
from msgspec import structs

_ESCAPED_DRAW = str.maketrans({"%": "%25", ";": "%3B"})
_ESCAPED = _ESCAPED_DRAW | str.maketrans({"#": "%23"})


Pair = tuple[str, str]
"""(subject, relation): the key of a row in all official scorers."""


class Source(NamedTuple):
    """Source of a candidate: a model, and a draw (a sample, a cloze or a part of it); "" if it has only one.

    Files hold it as text, "MODEL#DRAW", joined by "; ". Both signs are escaped inside names as in a URL.
    """

    model: str
    draw: str = ""

    def __str__(self) -> str:
        """Return the source as text for a file; `read` is the inverse."""
        model = self.model.translate(_ESCAPED)
        return f"{model}#{self.draw.translate(_ESCAPED_DRAW)}" if self.draw else model

    @classmethod
    def read(cls, text: str) -> Source:
        """Return the source from its text in a file."""
        model, _, draw = text.partition("#")
        return cls(unquote(model, errors="surrogateescape"), unquote(draw, errors="surrogateescape"))


class Query(msgspec.Struct, frozen=True, gc=False):
    """A benchmark query: find all objects of (subject, relation). `relation` is in the edition's spelling."""

    subject: str
    relation: str
    subject_id: str | None = None

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Return (subject, relation) by QID and by name, whichever is known: one in common means the same query."""
        return tuple((name, self.relation) for name in (self.subject_id, self.subject) if name)


@dataclass(frozen=True, slots=True)
class GoldObject:
    """True object: its accepted names, the preferred name first, and its QID (or literal), each if known.

    A row may list names and ids without saying which belong together; then each name and each id is an object of its
    own. parts: the pieces into which the published row split the name at its commas.
    """

    names: tuple[str, ...]
    id: str | None = None
    parts: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Return the preferred name; "" if unknown."""
        return self.names[0] if self.names else ""


@dataclass(frozen=True, slots=True)
class Example:
    """A query with its true objects, as in train and val splits. No objects means that the true answer is empty.

    words: slots of a prompt with the example's own words for them, such as its reasoning.
    """

    query: Query
    objects: tuple[GoldObject, ...]
    words: tuple[tuple[str, str], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Return the preferred names of the objects that have one; prompts show these."""
        return tuple(gold.name for gold in self.objects if gold.name)

    @property
    def size(self) -> int:
        """Return the number of objects: the number of ids if there are ids, since only names are split or lost."""
        return sum(gold.id is not None for gold in self.objects) or len(self.objects)

    @property
    def named(self) -> bool:
        """Return whether every object has its whole name."""
        return len(self.names) == self.size


@dataclass(frozen=True, slots=True)
class Fact:
    """A subject, a relation and all its objects; no objects means that there is none.

    relation: name of its module, or the Wikidata property if no module covers it.
    clozes: use {subject} and {mask}.
    objects: preferred names.
    ids: their QIDs or "", as many as objects.
    """

    subject: str
    relation: str
    clozes: tuple[str, ...]
    objects: tuple[str, ...]
    ids: tuple[str, ...] = ()


class Candidate(msgspec.Struct, frozen=True, gc=False):
    """A proposed object.

    sources: the sources that propose it.
    by_model: in a pooled set, (model, score) for each model that proposes it, in [0, 1].
    verification: a verifier's probability that it is right, in [0, 1]; None if none was asked or none could say.
    """

    text: str
    score: float = 1.0
    sources: tuple[Source, ...] = ()
    id: str | None = None
    by_model: tuple[tuple[str, float], ...] = ()
    verification: float | None = None


class Nil(msgspec.Struct, frozen=True, gc=False):
    """A proposal that there is no object (NIL). score, by_model: as in a candidate, in [0, 1]."""

    score: float = 1.0
    sources: tuple[Source, ...] = ()
    by_model: tuple[tuple[str, float], ...] = ()


Proposal = TypeVar("Proposal", Candidate, Nil)
"""Proposal of a source: an object, or NIL."""


class State(StrEnum):
    """State of a draw from a model. ANSWERED, CUT, ABSTAINED and DROPPED are answers; the others never count as empty.

    - CUT: the text was cut off, or repeated itself, after some objects; the complete objects count.
    - DROPPED: it named objects, but none was kept; this is an empty answer but no abstention.
    - TRUNCATED: it was cut off before its first object was complete.
    - EMPTY: it was recorded as an empty text, which says neither that there is an object nor that there is none.
    - MISSING: its call failed. UNASKED: nothing was sent, since a limit or the user stopped the run.
    """

    ANSWERED = "answered"
    CUT = "cut"
    ABSTAINED = "abstained"
    DROPPED = "dropped"
    UNPARSED = "unparsed"
    TRUNCATED = "truncated"
    EMPTY = "empty"
    MISSING = "missing"
    UNASKED = "not asked"

    @property
    def is_answer(self) -> bool:
        """Return whether the model gave an answer, which may be empty."""
        return self.has_objects or self in (State.ABSTAINED, State.DROPPED)

    @property
    def has_objects(self) -> bool:
        """Return whether the draw named objects that were kept."""
        return self in (State.ANSWERED, State.CUT)


class Dropped(NamedTuple):
    """An object that a model named and that was not kept. rule: the violated rule, in a word or two."""

    text: str
    rule: str


@dataclass(frozen=True, slots=True)
class CandidateSet:
    """Candidates of a query, best first once pooled, with the state of each draw and the dropped texts.

    nothing: proposals of an empty answer, scored like objects.
    nil_probabilities: each source's probability that there is no object, estimated apart from its answers. A pooled set
    holds at most one of each.
    tokens: tokens of the replies and their prompts, stored ones included; 0 if no language model was asked.
    """

    query: Query
    candidates: tuple[Candidate, ...] = ()
    draws: tuple[State, ...] = (State.ANSWERED,)
    dropped: tuple[Dropped, ...] = ()
    nothing: tuple[Nil, ...] = ()
    nil_probabilities: tuple[Nil, ...] = ()
    tokens: int = field(default=0, compare=False)

    @classmethod
    def proposing(cls, query: Query, proposals: Iterable[Candidate]) -> CandidateSet:
        """Return the set for scored names from a closed list, in which "" means an empty answer."""
        whole = tuple(proposals)
        return cls(
            query,
            tuple(candidate for candidate in whole if candidate.text),
            nothing=tuple(Nil(candidate.score, candidate.sources) for candidate in whole if not candidate.text),
        )

    @property
    def failed(self) -> bool:
        """Return whether the query must be asked again: no draw gave an answer, or one was not asked."""
        return State.UNASKED in self.draws or not any(state.is_answer for state in self.draws)

    @property
    def lacks_replies(self) -> bool:
        """Return whether a draw has no reply."""
        return not {State.MISSING, State.UNASKED}.isdisjoint(self.draws)

    def of_stopped_run(self, *, partial: bool) -> CandidateSet:
        """Return the set as one of a run that was stopped: what has no reply was not asked.

        partial: whether what was asked counts nevertheless.
        """
        draws = (State.UNASKED if one is State.MISSING else one for one in self.draws)
        return replace(
            self, draws=tuple(one for one in self.draws if one is not State.UNASKED) if partial else (*draws,)
        )

    @property
    def existence(self) -> float | None:
        """Return the mean probability of an object, estimated apart from answers; None if no source gives one."""
        return (
            1 - math.fsum(nil.score for nil in self.nil_probabilities) / len(self.nil_probabilities)
            if self.nil_probabilities
            else None
        )

    def with_sources(self, name: Callable[[Source], Source]) -> CandidateSet:
        """Return the set with its sources renamed."""

        def called(sources: Iterable[Source]) -> tuple[Source, ...]:
            return tuple(map(name, sources))

        return replace(
            self,
            candidates=tuple(
                structs.replace(candidate, sources=called(candidate.sources)) for candidate in self.candidates
            ),
            nothing=tuple(structs.replace(nil, sources=called(nil.sources)) for nil in self.nothing),
            nil_probabilities=tuple(
                structs.replace(nil, sources=called(nil.sources)) for nil in self.nil_probabilities
            ),
        )

    def without(self, wrong: Callable[[Candidate], bool], rule: str) -> CandidateSet:
        """Return the set without some candidates, which are noted as dropped by a rule.

        If no candidate is left, draws with objects become DROPPED.
        """
        dropped = [Dropped(candidate.text, rule) for candidate in self.candidates if wrong(candidate)]
        if not dropped:
            return self
        kept = tuple(candidate for candidate in self.candidates if not wrong(candidate))
        draws = self.draws
        if not kept:
            draws = tuple(State.DROPPED if state.has_objects else state for state in draws)
        return replace(self, candidates=kept, draws=draws, dropped=(*self.dropped, *dropped))


def together(query: Query, sets: Iterable[CandidateSet]) -> CandidateSet:
    """Return the union of several sets of one query, one after the other, not pooled."""
    whole = tuple(sets)
    return CandidateSet(
        query,
        tuple(candidate for item in whole for candidate in item.candidates),
        tuple(state for item in whole for state in item.draws),
        tuple(loss for item in whole for loss in item.dropped),
        tuple(nil for item in whole for nil in item.nothing),
        tuple(nil for item in whole for nil in item.nil_probabilities),
    )


@dataclass(frozen=True, slots=True)
class Prediction:
    """Final answer to a query. failed: whether no model answered the query, which is not an empty answer.

    withheld: why nothing is kept although there may be an object; "" if nothing is withheld.
    """

    query: Query
    objects: tuple[Candidate, ...] = ()
    failed: bool = False
    withheld: str = ""


class Generator(Protocol):
    """Proposes candidates, batch first: results come in any order, each distinct query exactly once."""

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """Yield one candidate set per query."""
        ...


Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")


def grouped(pairs: Iterable[tuple[Key, Item]]) -> defaultdict[Key, list[Item]]:
    """Return the items of each key, in order, with keys in order of first occurrence; [] for any other key."""
    groups: defaultdict[Key, list[Item]] = defaultdict(list)
    for key, item in pairs:
        groups[key].append(item)
    return groups
