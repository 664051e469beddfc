"""Normal forms of names, memoised, and a search for names in a text."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable


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


_PUNCTUATION = str.maketrans("", "", string.punctuation)


_APOSTROPHES = "'\u2019\u2018\u02bb\u02bc\u02b9`\u00b4"


_DROP_APOSTROPHES = str.maketrans("", "", _APOSTROPHES)


_SYMBOLS = frozenset("+$<=>|~^")


_SIGNS = frozenset("+#*.")
"""Signs that may distinguish two names."""


class _Folds(dict[int, str]):
    """Each character's form in a folded name, found out when a name first has the character.

    signed: whether the signs that may distinguish names are kept. A tab then stands for other punctuation.
    """

    def __init__(self, *, signed: bool = False) -> None:
        super().__init__()
        self._signs, self._gap = (_SIGNS, "\t") if signed else (frozenset[str](), " ")

    def __missing__(self, code: int) -> str:
        char = chr(code)
        category = unicodedata.category(char)
        if char in _APOSTROPHES or unicodedata.combining(char):
            self[code] = ""
        elif category == "Pd":
            self[code] = " "
        else:
            is_gap = char not in self._signs and (char in _SYMBOLS or category[0] == "P")
            self[code] = self._gap if is_gap else char
        return self[code]


_FOLDED, _SIGNED = _Folds(), _Folds(signed=True)
_WORD = re.compile(r"(?:(?<!\S)\.)?[^\s+#*.]+(?:(?<=\d)\.(?=\d)[^\s+#*.]+)*[+#*]*|\t")
"""Word of a signed name: a point before it, points of decimals, and the signs after it. Or a tab, which parts words."""
_APART = re.compile(r"(?<=[^\s+#*]) (?=[+#*]+\s*\Z)")
"""Blank before the signs at the end of a name, as in "Canal +"."""
_INITIALS = re.compile(r"(?<!\S)([^\W\d_]) +(?=[^\W\d_](?!\S))")
"""Single letter before another one."""


def _folded(text: str, folds: _Folds) -> str:
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text.translate(_DROP_APOSTROPHES))
    return text.casefold().translate(folds)


def plain_key(text: str) -> str:
    """Return the normal form of the 2022 edition: no ASCII punctuation, lower case, stripped."""
    return text.translate(_PUNCTUATION).lower().strip()


def folded_key(text: str) -> str:
    """Return the normal form of the 2026 edition.

    Apostrophes and diacritics are removed, NFKD and case folding applied, and punctuation becomes single spaces.
    """
    return " ".join(_folded(text, _FOLDED).split())


def name_key(text: str) -> str:
    """Return the key of a name: two spellings with the same key may mean the same entity. Empty for a blank text only.

    It is a folded name that keeps the signs which distinguish names: "+", "#" and "*" after a word, "." before it, and
    the point of a decimal, as in "C++", "A*", ".NET" and "2.5". At the end of a name, a blank may stand before them:
    "Canal +" is "Canal+". Other points say nothing, and single letters are joined, so that "U.S.A." is "USA", and
    "J. R. R. Tolkien" is "JRR Tolkien".
    """
    words = _folded(text, _SIGNED)
    if not _SIGNS.isdisjoint(words):
        words = " ".join(_WORD.findall(_APART.sub("", words)))
    if min(map(len, words.split()), default=0) == 1:
        words = _INITIALS.sub(r"\1", words)
    return " ".join(words.split()) or spelling(text)


def signed_words(text: str) -> tuple[str, ...]:
    """Return the words of a name that have a distinguishing sign. A scorer's normal form may lack these signs."""
    return tuple(word for word in name_key(text).split() if not _SIGNS.isdisjoint(word))


def spelling(text: str) -> str:
    """Return a name but for its case, its Unicode form and its blanks: all else distinguishes rows of a list."""
    return unicodedata.normalize("NFC", " ".join(text.split()).casefold())


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


_AFTER_LETTER = re.compile(r"(?<=[^\W\d_])\.|/")


def without_trailer(name: str) -> str:
    """Return a name without bracketed remarks at its end: "X (born 1960)" becomes "X"."""
    while (trailer := TRAILER.search(name[-LONGEST:])) and trailer.start() > 0:
        name = name[: len(name) - len(trailer[0])]
    return name


def without_legal_form(name: str) -> list[str]:
    """Return the words of a company's name without "Inc.", "Ltd." and the like; all words if no other is left."""
    words = name_key(_AFTER_LETTER.sub("", name)).split()
    return [word for word in words if word not in _LEGAL_FORMS] or words


WIKIDATA_ITEM = "http://www.wikidata.org/entity/"
"""Beginning of the address of Wikidata's items in RDF."""
QID = r"Q[1-9][0-9]{0,11}"
"""Pattern of an item's id; a match fits a column of integers and a list separated by "|"."""


_QID = re.compile(rf"(?:https?://(?:www\.|m\.)?wikidata\.org/(?:entity|wiki)/|wd:)?({QID})/?", re.IGNORECASE)


def as_qid(text: str) -> str | None:
    """Return the QID in a text that is a QID or an entity's URL; None for any other text."""
    match = _QID.fullmatch(text.strip())
    return match[1].upper() if match else None
