"""Context: text about a subject that a prompt tells before it asks.

A provider finds passages for queries. Where its text comes from decides whether a run is closed-book: "recall" asks the
model itself, "titles" and "passages" read text from outside it, which a closed-book recipe must not do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from lmkbc.errors import InputError
from lmkbc.settings import checked
from lmkbc.types import Query, Relation

Complete = Callable[[Sequence[str]], Sequence[str | None]]
"""Prompts to greedy completions, None where none can be had: how recall asks a model, whatever its back end."""


class Passage(msgspec.Struct, frozen=True):
    """A stretch of text with the title it stands under; the score is how near it is to the question, 1 if looked up."""

    title: str
    text: str
    score: float = 1.0


class Provider(Protocol):
    """Finds passages. Batch first."""

    def find(self, queries: Sequence[Query]) -> Sequence[tuple[Passage, ...] | None]:
        """The passages of each query, best first; none where nothing is known, None where that could not be told."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSettings:
    """Where context comes from, as a recipe's plain data.

    path: a JSONL file with "title" and "text" per line, which "titles" and "passages" read; "from" for the one that
    --from names. passages: how many are told of at most. words: how long a passage is, overlap: how many words it
    shares with the one before (both 0: as read).
    """

    provider: Literal["none", "titles", "passages", "recall"] = "none"
    path: str = ""
    passages: int = 1
    words: int = 300
    overlap: int = 50

    @classmethod
    def of(cls, settings: Mapping[str, Any], *, closed_book: bool) -> ContextSettings:
        """Settings from a recipe's table. InputError for what makes no sense, or reads while the book is closed."""
        context = checked(cls, settings, "context")
        reads = context.provider in ("titles", "passages")
        if reads and closed_book:
            raise InputError(
                f"the recipe is closed-book, but its context {context.provider!r} reads text from outside the model: "
                "say closed_book = false, or use 'none' or 'recall'"
            )
        if reads and not context.path:
            raise InputError(f"context {context.provider!r} lacks path: name a JSONL file of title and text")
        if context.passages < 1 or context.words < 0 or not 0 <= context.overlap <= max(context.words - 1, 0):
            raise InputError("context: passages is at least 1, and overlap is below words")
        return context


def located(settings: ContextSettings, files: Sequence[Path]) -> ContextSettings:
    """The settings with the file that --from names, where path is "from". InputError unless it names one."""
    if settings.path != "from":
        return settings
    if len(files) != 1:
        raise InputError("this system tells text about each subject: name one JSONL file of title and text with --from")
    return replace(settings, path=str(files[0]))


def provider(
    settings: ContextSettings, relations: Mapping[str, Relation], complete: Complete, cache: Path | None = None
) -> Provider | None:
    """The provider that the settings name; None for "none". cache: where an index of passages may be kept."""
    from lmkbc.context.corpus import Titles, read_corpus
    from lmkbc.context.recall import Recall
    from lmkbc.context.retrieval import Retrieval

    match settings.provider:
        case "none":
            return None
        case "recall":
            return Recall(relations, complete)
        case "titles":
            return Titles(read_corpus(Path(settings.path)), settings)
        case "passages":
            return Retrieval.open(read_corpus(Path(settings.path)), relations, settings, cache)


def gathered(finder: Provider, queries: Sequence[Query]) -> dict[Query, tuple[Passage, ...]]:
    """The passages of the queries for which it could be told whether there are any."""
    passages = zip(queries, finder.find(queries), strict=True)
    return {query: one for query, one in passages if one is not None}


def told(passages: Sequence[Passage]) -> str:
    """Passages as a prompt tells them."""
    return "\n".join(f"{one.title}: {one.text}" if one.title else one.text for one in passages)


def lines(found: Mapping[Query, Sequence[Passage]]) -> bytes:
    """What was found, as JSONL in the order of the queries, to be kept with a run."""
    rows = (
        {"SubjectEntity": query.subject, "Relation": query.relation, "passages": passages}
        for query, passages in found.items()
    )
    return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
