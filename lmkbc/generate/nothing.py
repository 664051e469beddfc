"""The baseline without objects, which every system must beat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lmkbc.generate.spec import GeneratorSpec
from lmkbc.notes import Notes
from lmkbc.run.base import Run
from lmkbc.types import CandidateSet, Generator, Nil, Query, Source


@dataclass(frozen=True, kw_only=True)
class Nothing(GeneratorSpec):
    """The table of `AllEmpty`."""

    def open(self, run: Run, notes: Notes) -> Generator:  # noqa: ARG002 -- it uses and records nothing
        """Return the generator."""
        return AllEmpty()


class AllEmpty:
    """Proposes no object for any query."""

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """Yield one set per query that only proposes NIL."""
        for query in dict.fromkeys(queries):
            yield CandidateSet(query, nothing=(Nil(1.0, (Source("nothing"),)),))
