"""Words of replies by language, from words.toml: what wraps, parts, ends, corrects or denies an answer.

All languages are tried on every text, since a reply does not say its language.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

_TABLES = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))


def _alternatives(table: Mapping[str, str | list[str]]) -> str:
    """Return the alternatives of a table in all languages as one expression; {name} stands for those of a table."""
    found = (one for language, ones in table.items() if language != "frame" for one in ones)
    inner = "|".join(found)
    return re.sub(r"\{([a-z_]+)\}", lambda name: f"(?:{_alternatives(_TABLES['pattern'][name[1]])})", inner)


WORDS = {
    name: frozenset(word.strip() for words in table.values() for word in re.split("[,\n]", words) if word.strip())
    for name, table in _TABLES["words"].items()
}
"""Name of a table -> its words and phrases in all languages."""
PATTERN = {
    name: re.compile(table.get("frame", "%s").replace("%s", f"(?:{_alternatives(table)})"))
    for name, table in _TABLES["pattern"].items()
}
"""Name of a table -> the expression of its alternatives in all languages."""
