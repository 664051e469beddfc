"""Generators around another generator: what they pass on of it, and one that asks it about some relations alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from lmkbc.types import CandidateSet, Generator, Query


class Around:
    """Hands on what the inner generator tells of a run: remarks, usage, and what it retrieved."""

    def __init__(self, generator: Generator) -> None:
        self.generator = generator

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the generator remarks."""
        return tuple(getattr(self.generator, "remarks", ()))

    @property
    def usage(self) -> Mapping[str, Any]:
        """What the generator's calls cost."""
        return getattr(self.generator, "usage", {})

    @property
    def retrieved(self) -> Mapping[Query, Any]:
        """What the generator retrieved."""
        return getattr(self.generator, "retrieved", {})


class Only(Around):
    """A generator that is asked about some relations; of the others it says nothing, and is no voice at all."""

    def __init__(self, generator: Generator, relations: Collection[str]) -> None:
        super().__init__(generator)
        self._relations = frozenset(relations)

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """The generator's sets, and a set without a draw for each query that it is not asked."""
        asked = [query for query in queries if query.relation in self._relations]
        yield from (CandidateSet(query, draws=()) for query in queries if query.relation not in self._relations)
        if asked:
            yield from self.generator.generate(asked)
