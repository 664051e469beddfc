"""Normal forms of names, memoised, and a search for names in a text."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import Any


class Memo(dict[str, str]):
    """Cache of normalised texts. It is emptied when it holds `limit` texts."""

    def __init__(self, normalise: Callable[[str], str], limit: int = 1 << 19) -> None:
        super().__init__()
        self._normalise = normalise
        self._limit = limit

    def __missing__(self, text: str) -> str:
        if len(self) >= self._limit:
            self.clear()
        key = self[text] = self._normalise(text)
        return key


_END = ""
"""Key that marks the end of a name in a tree of words; no word is empty."""
_PUNCTUATION = str.maketrans("", "", string.punctuation)


_APOSTROPHES = "'\u2019\u2018\u02bb\u02bc\u02b9`\u00b4"


_DROP_APOSTROPHES = str.maketrans("", "", _APOSTROPHES)


_SYMBOLS = frozenset("+$<=>|~^")


class _Folds(dict[int, str]):
    """Each character's form in a folded name, found out when a name first has the character."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if char in _APOSTROPHES or unicodedata.combining(char):
            self[code] = ""
        else:
            self[code] = " " if char in _SYMBOLS or unicodedata.category(char)[0] == "P" else char
        return self[code]


_FOLDED = _Folds()


def plain_key(text: str) -> str:
    """Return the normal form of the 2022 edition: no ASCII punctuation, lower case, stripped."""
    return text.translate(_PUNCTUATION).lower().strip()


def folded_key(text: str) -> str:
    """Return the normal form of the 2026 edition.

    Apostrophes and diacritics are removed, NFKD and case folding applied, and punctuation becomes single spaces.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text.translate(_DROP_APOSTROPHES))
    return " ".join(text.casefold().translate(_FOLDED).split())


def subject_key(text: str) -> str:
    """Return a subject's name in one Unicode form (NFC), with single blanks, and none at its ends."""
    return " ".join(unicodedata.normalize("NFC", text).split())


_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | {chr(code) for code in range(0xFE00, 0xFE10)}
"""Invisible characters that Unicode classifies as letters, signs or marks."""


def shown(text: str) -> str:
    """Return a text without invisible characters at its ends: white space, control and format characters, fillers.

    A blank text gives "".
    """
    text = text.strip()
    start = next((at for at, char in enumerate(text) if not _is_invisible(char)), len(text))
    end = next((at for at in range(len(text), start, -1) if not _is_invisible(text[at - 1])), start)
    return text[start:end]


def _is_invisible(char: str) -> bool:
    return unicodedata.category(char)[0] in "ZC" or char in _FILLERS


LONGEST = 300
"""Maximum number of characters of an object; a longer text is prose, not a name."""


TRAILER = re.compile(r"\s*(?:\(([^()]*)\)|\[([^\[\]]*)\])$")
"""A bracketed remark at the end of a name."""


_LEGAL_FORMS = frozenset(
    "the inc incorporated ltd limited co company corp corporation plc llc llp lp ag se gmbh kg sa nv bv ab oy oyj asa "
    "as spa srl pty kk".split()
)
"""Words in a company's name that do not change the company."""


def without_trailer(name: str) -> str:
    """Return a name without bracketed remarks at its end: "X (born 1960)" becomes "X"."""
    while (trailer := TRAILER.search(name[-LONGEST:])) and trailer.start() > 0:
        name = name[: len(name) - len(trailer[0])]
    return name


def without_legal_form(name: str) -> list[str]:
    """Return the words of a company's name without "Inc.", "Ltd." and the like; all words if no other is left."""
    words = folded_key(name.replace(".", "").replace("/", "")).split()
    return [word for word in words if word not in _LEGAL_FORMS] or words


QID = r"Q[1-9][0-9]{0,11}"
"""Pattern of an item's id; a match fits a column of integers and a list separated by "|"."""


_QID = re.compile(rf"(?:https?://(?:www\.|m\.)?wikidata\.org/(?:entity|wiki)/|wd:)?({QID})/?", re.IGNORECASE)


def as_qid(text: str) -> str | None:
    """Return the QID in a text that is a QID or an entity's URL; None for any other text."""
    match = _QID.fullmatch(text.strip())
    return match[1].upper() if match else None


class NameTree:
    """Tree of the words of names, which finds all names in a text in one pass."""

    def __init__(self) -> None:
        self._root: dict[str, Any] = {}

    def add(self, words: Sequence[str]) -> None:
        """Add a name of at least one word."""
        node = self._root
        for word in words:
            node = node.setdefault(word, {})
        node[_END] = True

    def find(self, words: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Yield (start, end) of each name in a text, counted in words; also for names inside longer ones."""
        for start, word in enumerate(words):
            if word not in self._root:
                continue
            node, end = self._root, start
            while end < len(words) and (node := node.get(words[end], {})):
                end += 1
                if _END in node:
                    yield start, end
