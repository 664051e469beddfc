"""Passages: text about a subject that a prompt holds before it asks, and how they are found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from lmkbc.types import Passage, Query


class Provider(Protocol):
    """Finds passages. Batch first."""

    def find(self, queries: Sequence[Query]) -> Sequence[tuple[Passage, ...] | None]:
        """The passages of each query, best first; none where nothing is known, None where that could not be told."""
        ...


def gathered(finder: Provider, queries: Sequence[Query]) -> dict[Query, tuple[Passage, ...]]:
    """The passages of the queries for which it could be told whether there are any."""
    passages = zip(queries, finder.find(queries), strict=True)
    return {query: known for query, known in passages if known is not None}


def as_context(passages: Sequence[Passage]) -> str:
    """Passages as text for a prompt, one a line."""
    return "\n".join(f"{passage.title}: {passage.text}" if passage.title else passage.text for passage in passages)


def lines(by_query: Mapping[Query, Sequence[Passage]]) -> bytes:
    """What was found, as JSONL in the order of the queries, to be kept with a run."""
    rows = (
        {"SubjectEntity": query.subject, "Relation": query.relation, "passages": passages}
        for query, passages in by_query.items()
    )
    return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
