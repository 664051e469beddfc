"""Passages: text about a subject that a prompt shows before the question, the settings for it, and local corpora.

A provider finds passages for queries. A run is closed-book if its text comes from the model itself ("recall"). The
providers "titles" and "passages" read text from outside the model, which a closed-book recipe must not do.
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
    """Source of context, as in a recipe.

    path: JSONL file with "title" and "text" per line, for "titles" and "passages"; "from" for the file of --from.
    passages: maximum number of passages in a prompt.
    words: length of a passage.
    overlap: words that a passage shares with the one before. With words = overlap = 0, texts are not cut.
    titles: relation, by any name -> the title to look up, with the slot {subject}; the subject itself if not given.
    """

    provider: Literal["none", "titles", "passages", "recall"] = "none"
    path: str = ""
    passages: int = 1
    words: int = 300
    overlap: int = 50
    titles: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ValueError for a wrong value."""
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
    """Finds passages, batch first."""

    def find(self, queries: Sequence[Query]) -> Sequence[tuple[Passage, ...] | None]:
        """Return the passages of each query, best first; () if there are none, None if the search failed."""
        ...


def gathered(finder: Provider, queries: Sequence[Query]) -> dict[Query, tuple[Passage, ...]]:
    """Return the passages of the queries whose search did not fail."""
    passages = zip(queries, finder.find(queries), strict=True)
    return {query: known for query, known in passages if known is not None}


def as_context(passages: Sequence[Passage]) -> str:
    """Return passages as text for a prompt, one per line."""
    return "\n".join(f"{passage.title}: {passage.text}" if passage.title else passage.text for passage in passages)


def lines(by_query: Mapping[Query, Sequence[Passage]]) -> bytes:
    """Return the passages found, as JSONL in the order of the queries, for a run's records."""
    rows = (
        {"SubjectEntity": query.subject, "Relation": query.relation, "passages": passages}
        for query, passages in by_query.items()
    )
    return msgspec.json.Encoder().encode_lines(rows)


def read_corpus(path: Path) -> list[Passage]:
    """Return the texts of a JSONL file of "title" and "text". Raise InputError with file, line and field."""
    if not path.is_file():
        raise InputError(f"the context file {path} does not exist: write one JSON object per line, with title and text")
    texts = read_jsonl(path, Passage)
    if not texts:
        raise InputError(f"the context file {path} is empty: write one JSON object per line, with title and text")
    return texts


def stretches(texts: Iterable[Passage], settings: ContextSettings) -> Iterator[Passage]:
    """Yield texts, cut into passages as the settings say, each with its title."""
    for text in texts:
        yield from (Passage(text.title, chunk) for chunk in chunks(text.text, settings.words, settings.overlap))


def chunks(text: str, words: int, overlap: int) -> Iterator[str]:
    """Yield a text in pieces of `words` words, each with the last `overlap` words of the piece before.

    The whole text is one piece if words is 0.
    """
    parts = text.split()
    if not words or len(parts) <= words:
        yield text.strip()
        return
    step = words - overlap
    for start in range(0, max(len(parts) - overlap, 1), step):
        yield " ".join(parts[start : start + words])


class Titles:
    """Looks up texts by the subject's title, without regard to case and accents, and returns their first passages.

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
        """Return the title under which a query's texts are looked up."""
        template = self._relations[query.relation].entry(self._settings.titles, "{subject}")
        return fill(template, {"subject": query.subject})
