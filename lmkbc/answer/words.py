"""Words of replies by language, from words.toml: what wraps, parts, ends, corrects or denies an answer.

All languages are tried on every text, since a reply does not say its language.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache, reduce
from pathlib import Path

from babel import Locale

from lmkbc.names import folded_key
from lmkbc.patterns import Patterns

TABLES = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
FORM = Patterns(TABLES["pattern"])
WORDS = {
    name: frozenset(word.strip() for words in table.values() for word in re.split("[,\n]", words) if word.strip())
    for name, table in TABLES["words"].items()
}
"""Name of a table -> its words and phrases in all languages."""
SCALES = {word.strip(): int(power) for power, words in TABLES["scale"].items() for word in words.split(",")}
"""Word behind a number -> power of ten."""


@cache
def places() -> frozenset[str]:
    """Return the keys of the names of countries and territories in all languages, mostly from CLDR.

    They show which joints and points are parts of a name, as in "Bosnien und Herzegowina".
    """
    return frozenset(map(folded_key, WORDS["joined_places"])) | frozenset(
        folded_key(name)
        for code in TABLES["pattern"]["joint"].keys() - {"frame"}
        for name in Locale(code).territories.values()
    )


def replaced(text: str, steps: str) -> str:
    """Return a text after the replacements of a list, one after the other."""
    return reduce(lambda kept, step: step[0].sub(step[1], kept), _steps(steps), text)


@cache
def _steps(name: str) -> list[tuple[re.Pattern[str], str]]:
    return [(re.compile(found), put) for found, put in TABLES["steps"][name]]
