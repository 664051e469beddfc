"""Files of documents: texts, Markdown and pages of a folder, each with its title, its address and its places."""

from __future__ import annotations

import bisect
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

from lmkbc.errors import InputError, counted
from lmkbc.kinds.url import URL, is_address

log = logging.getLogger(__name__)
ENDINGS = (".txt", ".md", ".html", ".htm")
LARGEST = 100_000_000
"""Maximum number of bytes of a file."""
_HEAD = 1000
"""Characters at the beginning of a document in which its address may stand."""


@dataclass(frozen=True)
class Document:
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


def read_folder(folder: Path) -> list[Document]:
    """Return the documents of a folder, by name. InputError for a folder without any, and for an unreadable file.

    Links that lead out of the folder are left out, and a warning counts them.
    """
    if not folder.is_dir():
        raise InputError(f"--documents {folder} is no directory: name a folder of .txt, .md or .html files")
    root, made, left = folder.resolve(), list[Document](), 0
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() not in ENDINGS or not path.is_file():
            continue
        if path.resolve().is_relative_to(root):
            made.append(_read(path, path.relative_to(folder).as_posix()))
        else:
            left += 1
    if left:
        log.warning("%s of %s lead out of the folder, and are left out", counted(left, "link"), folder)
    if not made:
        raise InputError(f"--documents {folder} holds no .txt, .md or .html file: name a folder that does")
    return made


def _read(path: Path, name: str) -> Document:
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
    named = (name for part in (beside, address, text[:_HEAD]) for name in URL.marked(part) if is_address(name))
    title = " ".join(title.split()) or _titled(text) or path.stem
    return Document(name, title, text, places, next(named, ""))


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
