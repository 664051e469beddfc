"""Context: text about a subject that a prompt tells before it asks.

A provider finds passages for queries. Where its text comes from decides whether a run is closed-book: "recall" asks the
model itself, "titles" and "passages" read text from outside it, which a closed-book recipe must not do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from lmkbc.ask.context.passages import Complete, Provider
from lmkbc.errors import InputError
from lmkbc.relation import Relation
from lmkbc.settings import checked


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
    from lmkbc.ask.context.corpus import Titles, read_corpus
    from lmkbc.ask.context.recall import Recall
    from lmkbc.ask.context.retrieval import Retrieval

    match settings.provider:
        case "none":
            return None
        case "recall":
            return Recall(relations, complete)
        case "titles":
            return Titles(read_corpus(Path(settings.path)), settings)
        case "passages":
            return Retrieval.open(read_corpus(Path(settings.path)), relations, settings, cache)
