"""Documents of the user: texts in a folder, passages of them that name a subject, and quotes that support an object.

Passages are ranked by BM25 (Robertson & Zaragoza 2009; library bm25s). A prompt shows them as its context. A quote is
the sentence of a passage in which an object stands: by its name, or by a value that its kind reads.

Texts are data. A sign that could begin a mark of a chat's turn is shown to a model as another one, and each passage is
one line of the prompt.
"""

from __future__ import annotations

import bisect
import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from lmkbc.errors import InputError, counted
from lmkbc.files.checksum import sha256
from lmkbc.kinds.kind import Match, Stated, kind_of
from lmkbc.names import folded_key, name_key
from lmkbc.notes import Passage
from lmkbc.relation import Relation
from lmkbc.session.quotes import Quote
from lmkbc.types import Query

log = logging.getLogger(__name__)
ENDINGS = (".txt", ".md", ".html", ".htm")
LARGEST = 100_000_000
"""Maximum number of bytes of a file."""
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
_SPACED = re.compile(r"\S+")
_SENTENCE = re.compile(r"[^\n.!?。！？]+(?:[.!?。！？](?!\s|$)[^\n.!?。！？]*)*[.!?。！？]*")
_ADDRESS = re.compile(r"https?://[^\s<>\"'{}|\\^`\x00-\x20\x7f-\x9f)\]]{1,2000}")
_HEAD = 1000
"""Characters at the beginning of a document in which its address may stand."""


@dataclass(frozen=True, slots=True)
class DocumentPassage(Passage):
    """A passage of a document. start, end: its characters in what is read of the file. address: of the document."""

    file: str = ""
    start: int = 0
    end: int = 0
    address: str = ""


@dataclass(frozen=True)
class _Document:
    """A document.

    text: what is read of it. places: places in the text, each with the same place in the file, where both part.
    """

    file: str
    title: str
    text: str
    places: Sequence[tuple[int, int]]
    address: str

    def place(self, at: int) -> int:
        """Return the place in the file of a place in the text."""
        read, raw = self.places[bisect.bisect_right(self.places, (at, LARGEST)) - 1]
        return raw + at - read


class _Html(HTMLParser):
    """Reads the text of a page with its places, without scripts, and its address and title."""

    HIDDEN = frozenset(("script", "style", "template", "noscript"))
    INLINE = frozenset("a abbr b bdi cite code em i mark q small span strong sub sup u".split())

    def __init__(self, raw: str) -> None:
        super().__init__(convert_charrefs=False)
        self.pieces, self.places, self.length = list[str](), list[tuple[int, int]](), 0
        self.address, self.title, self._hidden, self._in_title = "", "", 0, False
        self._starts = [0, *(found.end() for found in re.finditer("\n", raw))]
        self.feed(raw)
        self.close()

    def _add(self, text: str, *, here: bool = True) -> None:
        line, column = self.getpos()
        if text and not self._hidden:
            self.places.append((self.length, self._starts[line - 1] + column if here else self.places[-1][1]))
            self.pieces.append(text)
            self.length += len(text)

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        """Note what hides text, a title, and the page's address."""
        named = dict(attrs)
        self._hidden += tag in self.HIDDEN
        self._in_title = tag == "title"
        if (tag == "link" and named.get("rel") == "canonical") or named.get("property") == "og:url":
            self.address = self.address or str(named.get("href") or named.get("content") or "")
        if tag not in self.INLINE:
            self._add("\n")

    def handle_endtag(self, tag: str) -> None:
        """Note the end of what hides text."""
        self._hidden -= bool(self._hidden and tag in self.HIDDEN)
        self._in_title = False

    def handle_data(self, data: str) -> None:
        """Add text, or keep the title."""
        if self._in_title:
            self.title += data
        else:
            self._add(data)

    def handle_entityref(self, name: str) -> None:
        """Add a character that is named."""
        self._add(unescape(f"&{name};"))

    def handle_charref(self, name: str) -> None:
        """Add a character that is numbered."""
        self._add(unescape(f"&#{name};"))


class Documents:
    """The documents of a folder, which are read when they are first needed. Another process reads them anew."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()

    def __reduce__(self) -> tuple[type[Documents], tuple[Path]]:
        """Return how the documents are opened again."""
        return Documents, (self.folder,)

    @cached_property
    def _documents(self) -> list[_Document]:
        """Return the documents, by name. InputError for a folder without any, and for a file that cannot be read."""
        if not self.folder.is_dir():
            raise InputError(f"--documents {self.folder} is no directory: name a folder of .txt, .md or .html files")
        root, made, left = self.folder.resolve(), list[_Document](), 0
        for path in sorted(self.folder.rglob("*")):
            if path.suffix.lower() not in ENDINGS or not path.is_file():
                continue
            if not path.resolve().is_relative_to(root):
                left += 1
                continue
            made.append(_read(path, path.relative_to(self.folder).as_posix()))
        if left:
            log.warning("%s of %s lead out of the folder, and are left out", counted(left, "link"), self.folder)
        if not made:
            raise InputError(f"--documents {self.folder} holds no .txt, .md or .html file: name a folder that does")
        return made

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
    def _by_name(self) -> dict[str, _Document]:
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


def _read(path: Path, name: str) -> _Document:
    """Read a document. InputError for one that is too long, or no UTF-8."""
    if path.stat().st_size > LARGEST:
        raise InputError(f"{path} has more than {LARGEST // 1_000_000} MB: split it, or take it out of the folder")
    try:
        raw = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}, byte {error.start}: is no UTF-8; convert the file, or take it out of the folder"
        ) from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    text, places, address, title = raw, [(0, 0)], "", ""
    if path.suffix.lower().startswith(".htm"):
        page = _Html(raw)
        text, places, address, title = "".join(page.pieces), page.places or [(0, 0)], page.address, page.title
    beside = _head(path.with_name(f"{path.name}.url"))
    named = next(filter(None, (_ADDRESS.search(part) for part in (beside, address, text[:_HEAD]))), None)
    title = " ".join(title.split()) or _titled(text) or path.stem
    return _Document(name, title, text, places, named[0].rstrip(".,;") if named else "")


def _head(sidecar: Path) -> str:
    """Return the beginning of the file beside a document; "" for none, and for a link, which may lead out."""
    if sidecar.is_symlink() or not sidecar.is_file():
        return ""
    with sidecar.open(encoding="utf-8", errors="replace") as file:
        return file.read(_HEAD)


def _titled(text: str) -> str:
    """Return the first line of a text if it is a heading."""
    first = next((line.strip() for line in text[:_HEAD].splitlines() if line.strip()), "")
    return first.lstrip("# ") if first.startswith("#") or (len(first) < 100 and not first.endswith(".")) else ""


def _cut(document: _Document) -> Iterator[DocumentPassage]:
    """Yield the passages of a document."""
    words = [found.span() for found in _SPACED.finditer(document.text)]
    for first in range(0, max(len(words) - OVERLAP, 1), WORDS - OVERLAP):
        if some := words[first : first + WORDS]:
            start, end = some[0][0], some[-1][1]
            place = document.file, start, end, document.address
            yield DocumentPassage(document.title, document.text[start:end], 1.0, *place)
