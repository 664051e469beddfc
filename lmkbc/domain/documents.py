"""Documents of the user: texts in a folder, passages of them that name a subject, and quotes that support an object.

Passages are ranked by BM25 (Robertson & Zaragoza 2009; library bm25s). A prompt shows them as its context. A quote is
the sentence of a passage in which an object stands: by its name, or by a value that its kind reads.

Texts are data. A sign that could begin a mark of a chat's turn is shown to a model as another one, and each passage is
one line of the prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from lmkbc.ask.context import spans
from lmkbc.domain.document_files import Document, read_folder
from lmkbc.files.checksum import sha256
from lmkbc.kinds.kind import Match, Stated, kind_of
from lmkbc.names import folded_key, name_key
from lmkbc.notes import Passage
from lmkbc.relation import Relation
from lmkbc.session.quotes import Quote
from lmkbc.types import Query

WORDS, OVERLAP = 100, 20
"""Words of a passage, and those that it shares with the one before."""
SHOWN, RANKED = 3, 200
"""Passages that a prompt shows, and those that are searched for a subject's name, best first."""
_MARK = re.compile(r"<(?=[\w|/!｜▁])|\[(?=/?(?:INST|SYS|AVAILABLE|TOOL)\b)", re.IGNORECASE)
"""Sign before what some models read as the mark of a turn."""
_SHOWN = {"<": "‹", "[": "("}
_UNPARTED = "\u1100-\u11ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
"""Characters of scripts without blanks between words, or with endings on names: each counts as a word."""
_WORD = re.compile(rf"[{_UNPARTED}]|[^\W{_UNPARTED}]+")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
"""Border of two words in the name of a relation."""
_SENTENCE = re.compile(r"[^\n.!?。！？]+(?:[.!?。！？](?!\s|$)[^\n.!?。！？]*)*[.!?。！？]*")


@dataclass(frozen=True, slots=True)
class DocumentPassage(Passage):
    """A passage of a document. start, end: its characters in what is read of the file. address: of the document."""

    file: str = ""
    start: int = 0
    end: int = 0
    address: str = ""


class Documents:
    """The documents of a folder, which are read when they are first needed. Another process reads them anew."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()

    def __reduce__(self) -> tuple[type[Documents], tuple[Path]]:
        """Return how the documents are opened again."""
        return Documents, (self.folder,)

    @cached_property
    def _documents(self) -> list[Document]:
        return read_folder(self.folder)

    @cached_property
    def sha256(self) -> str:
        """Return the hash of all documents, with their names and addresses."""
        parts = [part for one in self._documents for part in (one.file, one.address, one.text)]
        return sha256("\0".join(parts).encode("utf-8", "surrogatepass"))

    @cached_property
    def _passages(self) -> list[DocumentPassage]:
        return [passage for one in self._documents for passage in _cut(one)]

    @cached_property
    def _folded(self) -> list[str]:
        """Return the words of each passage and its title, as names are compared."""
        return [f" {_plain(one.title)} {_plain(one.text)} " for one in self._passages]

    @cached_property
    def _index(self) -> Any:
        import bm25s

        index = bm25s.BM25()
        index.index([text.split() or ["-"] for text in self._folded], show_progress=False)
        return index

    def find(self, queries: Sequence[Query]) -> list[tuple[Passage, ...]]:
        """Return the passages that name each query's subject, best first, as a prompt shows them."""
        found = (self.found(query)[:SHOWN] for query in queries)
        return [tuple(Passage(_shown(one.title), _shown(one.text), one.score) for one in some) for some in found]

    def found(self, query: Query) -> list[DocumentPassage]:
        """Return all passages that name a query's subject, best first."""
        name = _plain(query.subject)
        words = [*name.split(), *_plain(_HUMP.sub(" ", query.relation)).split()]
        if not name or not (known := [word for word in words if word in self._index.vocab_dict]):
            return []
        most = min(RANKED, len(self._passages))
        places, scores = self._index.retrieve([known], k=most, show_progress=False)
        ranked = sorted(zip(-scores[0], places[0], strict=True))
        return [
            DocumentPassage(*(one.title, one.text, round(-float(score), 6)), one.file, one.start, one.end, one.address)
            for score, one, text in ((score, self._passages[at], self._folded[at]) for score, at in ranked)
            if f" {name} " in text
        ]

    def quote(self, query: Query, relation: Relation, names: Sequence[str]) -> Quote | None:
        """Return a sentence of a passage about a query in which an object stands; None if it stands in none.

        names: of the object, or its value. Of several sentences, the first that names the subject too is taken, or one
        of a document about it.
        """
        first, subject = None, f" {_plain(query.subject)} "
        for passage in self.found(query):
            for start, sentence in _sentences(passage.text):
                if not _states(sentence, names, relation):
                    continue
                at = passage.start + start
                quote = Quote(sentence, passage.file, at, at + len(sentence), passage.address)
                if subject in f" {_plain(sentence)} " or subject == f" {_plain(passage.title)} ":
                    return self._placed(quote)
                first = first or quote
        return first and self._placed(first)

    def _placed(self, quote: Quote) -> Quote:
        """Return a quote with its places in the file, for places in the text that was read of it."""
        document = self._by_name[quote.file]
        return replace(quote, start=document.place(quote.start), end=document.place(quote.end - 1) + 1)

    @cached_property
    def _by_name(self) -> dict[str, Document]:
        return {one.file: one for one in self._documents}


def _shown(text: str) -> str:
    """Return a text for a prompt: one line, without marks of turns."""
    return _MARK.sub(lambda sign: _SHOWN[sign[0]], " ".join(text.split()))


def _states(sentence: str, names: Sequence[str], relation: Relation) -> bool:
    """Return whether a sentence holds an object, by one of its names or by a value that its kind reads."""
    kind = kind_of(relation)
    if kind.has_values:
        exact = replace(relation, tolerance=0.0, absolute_tolerance=0.0)
        known = [value for text in names if (value := kind.known(Stated(text), exact))]
        values = kind.read(sentence, exact) if known else ()
        return any(kind.compare(own, value, exact) is Match.SAME for own in values for value in known)
    folded = f" {_plain(sentence)} "
    return any(name and f" {name} " in folded for name in map(_plain, names))


def _plain(text: str) -> str:
    """Return the words of a text as names are compared, parted by single blanks."""
    return " ".join(_WORD.findall(folded_key(text) or name_key(text)))


def _sentences(text: str) -> Iterator[tuple[int, str]]:
    for found in _SENTENCE.finditer(text):
        sentence = found[0].strip()
        if sentence:
            yield found.start() + found[0].index(sentence), sentence


def _cut(document: Document) -> Iterator[DocumentPassage]:
    """Yield the passages of a document."""
    for start, end in spans(document.text, WORDS, OVERLAP):
        place = document.file, start, end, document.address
        yield DocumentPassage(document.title, document.text[start:end], 1.0, *place)
