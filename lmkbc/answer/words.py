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

TABLES = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
_NAME = re.compile(r"\{([a-z_]+)\}")
"""Name of a table within an expression, which stands for that table's own."""


class _Forms:
    """Expressions by the names of their tables; each is compiled when it is first used."""

    def __getattr__(self, name: str) -> re.Pattern[str]:
        if name not in TABLES["pattern"]:
            raise AttributeError(name)
        self.__dict__[name] = re.compile(_expression(name))
        return self.__dict__[name]  # type: ignore[no-any-return]


def _expression(name: str) -> str:
    """Return a table's frame with the alternatives of all languages in it."""
    table = TABLES["pattern"][name]
    ones = (one for language, alternatives in table.items() if language != "frame" for one in alternatives)
    whole = str(table.get("frame", "%s")).replace("%s", f"(?:{'|'.join(ones)})")
    return _NAME.sub(lambda other: re.sub(r"\A\(\?[a-z]+\)", "", _expression(other[1])), whole)


FORM = _Forms()
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
