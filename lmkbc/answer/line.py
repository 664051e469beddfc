"""Strict reading of a closing line that the prompt asks for, such as "ANSWER: Chad, Mali".

Only lines that begin with the prompt's words count, anywhere in the text. If such lines disagree, there is no answer.
Names are taken as written, without full stops at their ends. No other form of an answer is read.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from lmkbc.answer.numbers import plain
from lmkbc.answer.parse import Parsed
from lmkbc.ask.frames import Listing
from lmkbc.relation import Relation
from lmkbc.types import State

NOTHING = frozenset(("none", "null", "n/a", "na", "unknown", "empty", "no answer"))
"""Words for no object on such a line, besides the word that the prompt gives."""

_SUFFIX = re.compile(r"(?:jr|sr|ii|iii|iv|inc|ltd|llc|plc|co|corp)\.?", re.IGNORECASE)
_NUMBER = re.compile(r"-?\d[\d,]{0,40}(?:\.\d{1,40})?")


class Line(NamedTuple):
    """Text of an answer's line. last: whether nothing follows it; a text that was cut off then ends in it."""

    text: str
    last: bool


def answer_line(text: str, mark: str) -> Line | None:
    """Return the line that begins with a mark, without the mark; None if there is none, or if two of them disagree.

    Blank lines do not count. Lines that differ only in case and blanks agree.
    """
    found = [(match.end(), _unmarked(match[0], mark)) for match in _marked(mark).finditer(text)]
    lines = [(end, line) for end, line in found if line]
    if len({" ".join(line.split()).casefold() for _, line in lines}) != 1:
        return None
    end, line = lines[-1]
    return Line(line, not text[end:].strip())


def named(line: str, listing: Listing, relation: Relation, null: str) -> Parsed:
    """Return the objects of a line as written: its first number, or names separated by semicolons or commas.

    listing: with "semicolon", commas belong to names. A suffix such as "Jr." stays with the name before it. null: the
    prompt's word for no object.
    """
    nothing = NOTHING | {null.casefold()}
    if line.strip(" .").casefold() in nothing:
        return Parsed(State.ABSTAINED)
    if relation.kind == "number":
        number = _NUMBER.search(line)
        if number is None:
            return Parsed(State.UNPARSED)
        return Parsed(State.ANSWERED, (plain(Decimal(number[0].replace(",", ""))),))
    names: list[str] = []
    for part in re.split(";" if listing == "semicolon" else "[,;]", line):
        name = part.strip(" .")
        name = name[4:].strip() if name[:4].casefold() == "and " else name
        if names and _SUFFIX.fullmatch(name):
            names[-1] = f"{names[-1]}, {name}"
        elif name:
            names.append(name)
    objects = tuple(dict.fromkeys(name for name in names if name.casefold() not in nothing))
    if not objects:
        return Parsed(State.ABSTAINED if names else State.UNPARSED)
    return Parsed(State.ANSWERED, objects)


@lru_cache(maxsize=64)
def _marked(mark: str) -> re.Pattern[str]:
    """Return a pattern that finds lines that begin with a mark; blanks may stand before its colon."""
    words = r"[ \t]*".join(re.escape(part) for part in re.split(r"\s*(?=:)", mark))
    return re.compile(rf"^[ \t]*(?:{words})[^\r\n]*$", re.IGNORECASE | re.MULTILINE)


def _unmarked(line: str, mark: str) -> str:
    """Return a line without its mark, which some models write twice."""
    head = re.compile(_marked(mark).pattern.removesuffix(r"[^\r\n]*$"), re.IGNORECASE)
    while found := head.match(line):
        line = line[found.end() :].strip()
    return line
