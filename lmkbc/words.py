"""Words of replies and tables by language, from words.toml: what wraps, parts, ends, corrects or denies an answer.

All languages are tried on every text, since a reply does not say its language.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache, reduce
from pathlib import Path

from babel import Locale

from lmkbc.names import folded_key
from lmkbc.patterns import Patterns

LONGEST_SENTENCE = 400
"""Maximum number of characters of a sentence that is taken apart."""
TABLES = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
FORM = Patterns(TABLES["pattern"])


def _listed(name: str, language: str) -> Iterator[str]:
    """Yield the words of a table in a language, and those of the tables that it names in braces."""
    for word in filter(None, map(str.strip, re.split("[,\n]", TABLES["words"][name].get(language, "")))):
        other = re.fullmatch(r"\{([a-z_]+)\}", word)
        yield from _listed(other[1], language) if other else (word,)


WORDS = {
    name: frozenset(word for language in table for word in _listed(name, language))
    for name, table in TABLES["words"].items()
}
"""Name of a table -> its words and phrases in all languages."""
SCALES = {word.strip(): int(float(factor)) for factor, words in TABLES["scale"].items() for word in words.split(",")}
"""Word behind a number -> factor."""


@cache
def words_in(name: str, language: str) -> frozenset[str]:
    """Return the words of a table in one language, folded."""
    return frozenset(map(folded_key, _listed(name, language)))


@cache
def notions(language: str = "") -> tuple[str, ...]:
    """Return the words for each notion of relations in one language, or in any: they stand for one another."""
    return tuple(
        folded_key(words) for one in TABLES["notion"].values() for code, words in one.items() if language in ("", code)
    )


def says_none(text: str | None) -> bool:
    """Return whether a value of a table says that there is no object, as "none" does."""
    return _plain(text) in WORDS["none"]


def names_nothing(text: str | None) -> bool:
    """Return whether a value says that there is no object, or that it is not known, or is of marks alone."""
    marks = text and FORM.no_name.fullmatch(text.strip(" ()"))
    return says_none(text) or _plain(text) in WORDS["not_known"] or bool(marks)


def _plain(text: str | None) -> str:
    return (text or "").strip(" ().").lower()


@cache
def locales() -> list[Locale]:
    """Return English and the languages of joints, in CLDR."""
    return [Locale(code) for code in ("en", *sorted(TABLES["pattern"]["joint"].keys() - {"frame"}))]


@cache
def places() -> frozenset[str]:
    """Return the keys of the names of countries and territories in all languages, mostly from CLDR.

    They show which joints and points are parts of a name, as in "Bosnien und Herzegowina".
    """
    return frozenset(map(folded_key, WORDS["joined_places"])) | frozenset(
        folded_key(name) for locale in locales()[1:] for name in locale.territories.values()
    )


def replaced(text: str, steps: str) -> str:
    """Return a text after the replacements of a list, one after the other."""
    return reduce(lambda kept, step: step[0].sub(step[1], kept), _steps(steps), text)


@cache
def _steps(name: str) -> list[tuple[re.Pattern[str], str]]:
    return [(re.compile(FORM.expanded(found)), put) for found, put in TABLES["steps"][name]]
