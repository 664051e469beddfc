"""Candidate sets, as tests write them: what a query's voices propose in one list."""

from __future__ import annotations

from collections.abc import Iterable

from lmkbc.types import Absence, Candidate, CandidateSet, Dropped, Query, State
from lmkbc.voice import Voice


def voices(*texts: str) -> tuple[Voice, ...]:
    """Voices by what files call them."""
    return tuple(map(Voice.read, texts))


def proposals(found: CandidateSet) -> list[Candidate | Absence]:
    """All that is proposed in a set: objects, and to answer nothing."""
    return [*found.candidates, *found.nothing]


def candidate_set(
    query: Query,
    proposals: Iterable[Candidate | Absence] = (),
    draws: tuple[State, ...] = (State.ANSWERED,),
    dropped: tuple[Dropped, ...] = (),
    doubts: tuple[Absence, ...] = (),
) -> CandidateSet:
    """A set of objects and proposals to answer nothing."""
    given = tuple(proposals)
    return CandidateSet(
        query,
        tuple(one for one in given if isinstance(one, Candidate)),
        draws,
        dropped,
        tuple(one for one in given if isinstance(one, Absence)),
        doubts,
    )
