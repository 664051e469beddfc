"""A local corpus: texts by title, looked up by the subject's name or cut into passages for retrieval."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from lmkbc.ask.context.settings import ContextSettings
from lmkbc.errors import InputError
from lmkbc.files.jsonl import read_jsonl
from lmkbc.names import folded_key
from lmkbc.types import Passage, Query


def read_corpus(path: Path) -> list[Passage]:
    """The texts of a JSONL file of "title" and "text". InputError names file, line and field."""
    if not path.is_file():
        raise InputError(f"the context file {path} does not exist: write one JSON object per line, with title and text")
    texts = read_jsonl(path, Passage)
    if not texts:
        raise InputError(f"the context file {path} is empty: write one JSON object per line, with title and text")
    return texts


def chunks(text: str, words: int, overlap: int) -> Iterator[str]:
    """A text in stretches of so many words, each with the last words of the one before; whole for 0 words."""
    parts = text.split()
    if not words or len(parts) <= words:
        yield text.strip()
        return
    step = words - overlap
    for start in range(0, max(len(parts) - overlap, 1), step):
        yield " ".join(parts[start : start + words])


class Titles:
    """Looks a subject up by title, whatever its case and accents; the first passages of the text are told."""

    def __init__(self, texts: Sequence[Passage], settings: ContextSettings) -> None:
        self._settings = settings
        self._texts: defaultdict[str, list[Passage]] = defaultdict(list)
        for text in texts:
            self._texts[folded_key(text.title)].append(text)

    def find(self, queries: Sequence[Query]) -> list[tuple[Passage, ...]]:
        """The passages of each query."""
        return [tuple(self._of(query))[: self._settings.passages] for query in queries]

    def _of(self, query: Query) -> Iterator[Passage]:
        for text in self._texts.get(folded_key(query.subject), []):
            for chunk in chunks(text.text, self._settings.words, self._settings.overlap):
                yield Passage(text.title, chunk)
