"""Generators around another one: one that asks it about some relations alone, one that calls its sources by a name."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from lmkbc.types import (
    CandidateSet,
    Generator,
    Query,
    Source,
)


class Only:
    """A generator that is asked about some relations; of the others it says nothing, and is no source at all."""

    def __init__(self, generator: Generator, relations: Collection[str]) -> None:
        self._generator, self._relations = generator, frozenset(relations)

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """The generator's sets, and a set without a draw for each distinct query that it is not asked."""
        distinct = list(dict.fromkeys(queries))
        wanted = [query for query in distinct if query.relation in self._relations]
        yield from (CandidateSet(query, draws=()) for query in distinct if query.relation not in self._relations)
        if wanted:
            yield from self._generator.generate(wanted)


class Named:
    """A generator that is one model in pools: its source "prior" is "name#prior" there."""

    def __init__(self, generator: Generator, name: str) -> None:
        self._generator, self._name = generator, name

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """The generator's sets, their sources renamed."""
        for candidates in self._generator.generate(queries):
            yield candidates.with_sources(lambda source: Source(self._name, str(source)))
