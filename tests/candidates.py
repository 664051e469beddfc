"""Candidate sets, as tests write them: what a query's sources propose in one list."""

from collections.abc import Iterable

from lmkbc.testing import Candidate, CandidateSet, Dropped, Nil, Query, Source, State


def sources(*texts: str) -> tuple[Source, ...]:
    """OtherSources by what files call them."""
    return tuple(map(Source.read, texts))


def proposals(found: CandidateSet) -> list[Candidate | Nil]:
    """All that is proposed in a set: objects, and to answer nothing."""
    return [*found.candidates, *found.nothing]


def candidate_set(
    query: Query,
    proposals: Iterable[Candidate | Nil] = (),
    draws: tuple[State, ...] = (State.ANSWERED,),
    dropped: tuple[Dropped, ...] = (),
    nil_probabilities: tuple[Nil, ...] = (),
) -> CandidateSet:
    """A set of objects and proposals to answer nothing."""
    given = tuple(proposals)
    return CandidateSet(
        query,
        tuple(one for one in given if isinstance(one, Candidate)),
        draws,
        dropped,
        tuple(one for one in given if isinstance(one, Nil)),
        nil_probabilities,
    )
