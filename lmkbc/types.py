"""The values that flow through the engine: frozen, slotted, picklable; no behaviour beyond self-checks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple, Protocol, TypeVar
from urllib.parse import unquote

import msgspec
from msgspec import structs

_ESCAPED_DRAW = str.maketrans({"%": "%25", ";": "%3B"})
_ESCAPED = _ESCAPED_DRAW | str.maketrans({"#": "%23"})


class Source(NamedTuple):
    """Source of a candidate: a model, and one of its samples, clozes or sources; "" if it has only one.

    Its text, "MODEL#DRAW", stands in files alone, where several are joined by "; ": what would be taken for either
    sign is escaped there as in a URL.
    """

    model: str
    draw: str = ""

    def __str__(self) -> str:
        """Return the source as a file names it; `read` is the way back."""
        model = self.model.translate(_ESCAPED)
        return f"{model}#{self.draw.translate(_ESCAPED_DRAW)}" if self.draw else model

    @classmethod
    def read(cls, text: str) -> Source:
        """Return the source that a file names."""
        model, _, draw = text.partition("#")
        return cls(unquote(model, errors="surrogateescape"), unquote(draw, errors="surrogateescape"))


class Query(msgspec.Struct, frozen=True, gc=False):
    """Question of a benchmark: all objects of (subject, relation); `relation` as the edition spells it."""

    subject: str
    relation: str
    subject_id: str | None = None


@dataclass(frozen=True, slots=True)
class GoldObject:
    """True object: its accepted names, the preferred name first, and its QID (or literal), each where known.

    Where a row does not tell which of its names belongs to which of its ids, a name and an id are an object each.
    parts: what the published row split the name into, at its commas.
    """

    names: tuple[str, ...]
    id: str | None = None
    parts: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Return the preferred name, "" where none is known."""
        return self.names[0] if self.names else ""


@dataclass(frozen=True, slots=True)
class Example:
    """A query with its objects: what train and val splits hold. No objects means a true empty answer.

    words: slots of a prompt that it fills with words of its own, such as its reasoning, and these.
    """

    query: Query
    objects: tuple[GoldObject, ...]
    words: tuple[tuple[str, str], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Return the preferred names of the objects that have one: what a prompt may show, where an id has no place."""
        return tuple(gold.name for gold in self.objects if gold.name)

    @property
    def size(self) -> int:
        """Return how many objects there are: as many as ids, if there are ids, since only names are split or lost."""
        return sum(gold.id is not None for gold in self.objects) or len(self.objects)

    @property
    def named(self) -> bool:
        """Return whether the names are those of all objects: none is lost, and none is left in pieces."""
        return len(self.names) == self.size


@dataclass(frozen=True, slots=True)
class Fact:
    """A subject, what is said of it, and all objects of that: none is the fact that there is none.

    relation: the name of its module, or the Wikidata property where none covers it. clozes use {subject} and {mask}.
    objects: preferred names; ids: their QIDs or "", as long as objects.
    """

    subject: str
    relation: str
    clozes: tuple[str, ...]
    objects: tuple[str, ...]
    ids: tuple[str, ...] = ()


class Candidate(msgspec.Struct, frozen=True, gc=False):
    """A proposed object; `sources` are the sources behind it.

    by_model: once pooled, what each model that proposes it makes of it, as (model, score), in [0, 1].
    verification: how likely it holds, as a verifier says, in [0, 1]; None where none was asked or none could tell.
    """

    text: str
    score: float = 1.0
    sources: tuple[Source, ...] = ()
    id: str | None = None
    by_model: tuple[tuple[str, float], ...] = ()
    verification: float | None = None


class Nil(msgspec.Struct, frozen=True, gc=False):
    """A proposal that there is no object (NIL): score and by_model as a candidate's, in [0, 1]."""

    score: float = 1.0
    sources: tuple[Source, ...] = ()
    by_model: tuple[tuple[str, float], ...] = ()


Proposal = TypeVar("Proposal", Candidate, Nil)
"""Proposal of a source: an object, or that there is none."""


class State(StrEnum):
    """State of a draw from a model. Only the first four are answers; the rest never count as empty.

    CUT: it was cut off, or went round in circles, once it had named objects: those whose end it had come to count.
    DROPPED: it named objects, none of which was kept: an answer with nothing in it, and no abstention.
    TRUNCATED: it was cut off before it had come to the end of one.
    """

    ANSWERED = "answered"
    CUT = "cut"
    ABSTAINED = "abstained"
    DROPPED = "dropped"
    UNPARSED = "unparsed"
    TRUNCATED = "truncated"
    MISSING = "missing"

    @property
    def is_answer(self) -> bool:
        """Return whether the model committed itself, be it to nothing."""
        return self.has_objects or self in (State.ABSTAINED, State.DROPPED)

    @property
    def has_objects(self) -> bool:
        """Return whether it named objects that were kept."""
        return self in (State.ANSWERED, State.CUT)


class Dropped(NamedTuple):
    """An object that a model named and that was not kept; rule: what it went against, in a word or two."""

    text: str
    rule: str


@dataclass(frozen=True, slots=True)
class CandidateSet:
    """Candidates of a query, best first once pooled, the state of each draw that made them, and the dropped texts.

    nothing: proposals to answer nothing, scored like objects. nil_probabilities: the probability of each source, apart
    from any answer, that there is no object. A pooled set has one of either at most.
    tokens: of the replies and their prompts, stored ones included; 0 where no language model was asked.
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
        """Return the set of what a closed list scores, where the one without text is to answer nothing."""
        whole = tuple(proposals)
        return cls(
            query,
            tuple(candidate for candidate in whole if candidate.text),
            nothing=tuple(Nil(candidate.score, candidate.sources) for candidate in whole if not candidate.text),
        )

    @property
    def failed(self) -> bool:
        """True when no draw gave an answer, so that the query must be asked again, not answered with nothing."""
        return not any(state.is_answer for state in self.draws)

    @property
    def existence(self) -> float | None:
        """Return the probability that there is an object, as sources have it apart from their answers; None if none."""
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
        """Return the set without some candidates, noted as dropped by a rule; draws that named no others are so."""
        dropped = [Dropped(candidate.text, rule) for candidate in self.candidates if wrong(candidate)]
        if not dropped:
            return self
        kept = tuple(candidate for candidate in self.candidates if not wrong(candidate))
        draws = self.draws
        if not kept:
            draws = tuple(State.DROPPED if state.has_objects else state for state in draws)
        return replace(self, candidates=kept, draws=draws, dropped=(*self.dropped, *dropped))


def together(query: Query, sets: Iterable[CandidateSet]) -> CandidateSet:
    """Return what several sets of one query hold, one after the other, not pooled."""
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
    """Answer that is kept for a query. `failed` marks a query that no model answered; it is not an empty answer.

    withheld: why nothing is kept though there may be an object, "" where nothing is withheld.
    """

    query: Query
    objects: tuple[Candidate, ...] = ()
    failed: bool = False
    withheld: str = ""


class Generator(Protocol):
    """Proposes candidates. Batch first: the order of results is free, each distinct query comes back exactly once."""

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """Yield one candidate set per query."""
        ...
