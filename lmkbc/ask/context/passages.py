"""Passages: text about a subject that a prompt holds before it asks; what a recipe says of it, and its local corpus.

A provider finds passages for queries. Where its text comes from decides whether a run is closed-book: "recall" asks the
model itself, "titles" and "passages" read text from outside it, which a closed-book recipe must not do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from lmkbc.ask.frames import check_slots
from lmkbc.ask.prompts import fill
from lmkbc.errors import InputError, refuse
from lmkbc.files.jsonl import read_jsonl
from lmkbc.groups import grouped
from lmkbc.names import folded_key
from lmkbc.notes import Passage
from lmkbc.relation import Relation
from lmkbc.types import Query


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSettings:
    """Source of context, as a recipe's plain data.

    path: a JSONL file with "title" and "text" per line, which "titles" and "passages" read; "from" for the one that
    --from names. passages: how many are told of at most. words: how long a passage is, overlap: how many words it
    shares with the one before (both 0: as read). titles: relation, by any name -> the title to look up, over {subject};
    the subject itself where there is none.
    """

    provider: Literal["none", "titles", "passages", "recall"] = "none"
    path: str = ""
    passages: int = 1
    words: int = 300
    overlap: int = 50
    titles: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ValueError for a value that makes no sense."""
        refuse(
            (self.reads and not self.path, f"{self.provider!r} lacks path: name a JSONL file of title and text"),
            (
                self.passages < 1 or self.words < 0 or not 0 <= self.overlap <= max(self.words - 1, 0),
                "passages is at least 1, and overlap is below words",
            ),
        )
        for name, template in self.titles.items():
            check_slots(f"titles.{name}", template, ("subject",))

    @property
    def reads(self) -> bool:
        """Return whether it reads text from outside the model, which a closed-book recipe must not do."""
        return self.provider in ("titles", "passages")


class Provider(Protocol):
    """Finds passages. Batch first."""

    def find(self, queries: Sequence[Query]) -> Sequence[tuple[Passage, ...] | None]:
        """Return the passages of each query, best first; () if nothing is known, None if that could not be told."""
        ...


def gathered(finder: Provider, queries: Sequence[Query]) -> dict[Query, tuple[Passage, ...]]:
    """Return the passages of the queries for which it could be told whether there are any."""
    passages = zip(queries, finder.find(queries), strict=True)
    return {query: known for query, known in passages if known is not None}


def as_context(passages: Sequence[Passage]) -> str:
    """Return passages as text for a prompt, one a line."""
    return "\n".join(f"{passage.title}: {passage.text}" if passage.title else passage.text for passage in passages)


def lines(by_query: Mapping[Query, Sequence[Passage]]) -> bytes:
    """Return what was found, as JSONL in the order of the queries, to be kept with a run."""
    rows = (
        {"SubjectEntity": query.subject, "Relation": query.relation, "passages": passages}
        for query, passages in by_query.items()
    )
    return msgspec.json.Encoder().encode_lines(rows)


def read_corpus(path: Path) -> list[Passage]:
    """Return the texts of a JSONL file of "title" and "text". InputError names file, line and field."""
    if not path.is_file():
        raise InputError(f"the context file {path} does not exist: write one JSON object per line, with title and text")
    texts = read_jsonl(path, Passage)
    if not texts:
        raise InputError(f"the context file {path} is empty: write one JSON object per line, with title and text")
    return texts


def stretches(texts: Iterable[Passage], settings: ContextSettings) -> Iterator[Passage]:
    """Yield texts in stretches, as the settings say, each under its title."""
    for text in texts:
        yield from (Passage(text.title, chunk) for chunk in chunks(text.text, settings.words, settings.overlap))


def chunks(text: str, words: int, overlap: int) -> Iterator[str]:
    """Yield a text in stretches of so many words, each with the last words of the one before; whole for 0 words."""
    parts = text.split()
    if not words or len(parts) <= words:
        yield text.strip()
        return
    step = words - overlap
    for start in range(0, max(len(parts) - overlap, 1), step):
        yield " ".join(parts[start : start + words])


class Titles:
    """Looks a subject up by title, whatever its case and accents; the first passages of its texts are told.

    relations: by the edition's names.
    """

    def __init__(self, texts: Sequence[Passage], settings: ContextSettings, relations: Mapping[str, Relation]) -> None:
        self._settings, self._relations = settings, relations
        self._texts = grouped((folded_key(text.title), text) for text in texts)

    def find(self, queries: Sequence[Query]) -> list[tuple[Passage, ...]]:
        """Return the passages of each query."""
        found = (stretches(self._texts.get(folded_key(self._title(query)), []), self._settings) for query in queries)
        return [tuple(islice(passages, self._settings.passages)) for passages in found]

    def _title(self, query: Query) -> str:
        """Return the title that a query's texts have."""
        template = self._relations[query.relation].entry(self._settings.titles, "{subject}")
        return fill(template, {"subject": query.subject})
