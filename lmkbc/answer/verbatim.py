"""Names as a model wrote them: nothing is trimmed or left out, and no word is taken for an empty answer.

Systems that do not clean answers, or clean them later, read them this way; `parse` and `clean` serve the others. Some
prompts ask for a closing line such as "ANSWER: Chad, Mali". Only lines that begin with the prompt's words count then,
anywhere in the text. If such lines disagree, there is no answer.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from lmkbc.answer.abstain import is_mute
from lmkbc.answer.elements import elements, mended, narrowed
from lmkbc.answer.listing import parted
from lmkbc.answer.literal import has_empty_list, read_literals
from lmkbc.answer.numbers import plain
from lmkbc.answer.parse import LONGEST_ANSWER, Parsed
from lmkbc.ask.frames import JOINTS, Listing
from lmkbc.relation import Relation
from lmkbc.types import State

NOTHING = frozenset(("none", "null", "n/a", "na", "unknown", "empty", "no answer"))
"""Words for no object on such a line, besides the word that the prompt gives."""

_SUFFIX = re.compile(r"(?:jr|sr|ii|iii|iv|inc|ltd|llc|plc|co|corp)\.?", re.IGNORECASE)
_NUMBER = re.compile(r"-?\d[\d,]{0,40}(?:\.\d{1,40})?")


class _Line(NamedTuple):
    """Text of an answer's line. last: whether nothing follows it; a text that was cut off then ends in it."""

    text: str
    last: bool


def answer_line(text: str, mark: str) -> _Line | None:
    """Return the line that begins with a mark, without the mark; None if there is none, or if two of them disagree.

    Blank lines do not count. Lines that differ only in case and blanks agree.
    """
    found = [(match.end(), _unmarked(match[0], mark)) for match in _marked(mark).finditer(text)]
    lines = [(end, line) for end, line in found if line]
    if len({" ".join(line.split()).casefold() for _, line in lines}) != 1:
        return None
    end, line = lines[-1]
    return _Line(line, not text[end:].strip())


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


_NULLS = ("null", "None")
"""Literals for nothing in JSON and Python."""


def verbatim(text: str, relation: Relation, subject: str, null: str = "") -> Parsed:
    """Return the objects of one raw completion. null: text for no object, besides an empty list."""
    answer, _ = narrowed(text)
    if not answer:
        return Parsed(State.TRUNCATED if answer is None else State.UNPARSED)
    if is_mute(answer):
        return Parsed(State.ABSTAINED if answer == null else State.UNPARSED)
    words, empty = _words(answer[:LONGEST_ANSWER], relation, subject)
    if not words:
        return Parsed(State.ABSTAINED if empty else State.UNPARSED)
    nothing = words == (null,) or words == _words(null, relation, subject)[0]
    return Parsed(State.ABSTAINED) if nothing else Parsed(State.ANSWERED, words)


def split(text: str, listing: Listing, null: str = "") -> Parsed:
    """Return the objects of a reply that is split at every separator of the listing, also within names.

    For a list, the text in its brackets is split at every comma and loses its quotation marks.
    """
    answer = text.strip()
    if answer == null:
        return Parsed(State.ABSTAINED)
    marks, trimmed = JOINTS[listing], None
    if listing in ("json", "python"):
        _, opened, listed = answer.partition("[")
        answer, marks, trimmed = listed.partition("]")[0], opened and ",", " \t\n\"'"
    parts = [part.strip(trimmed).removeprefix("and ").strip() for part in answer.split(marks)] if marks else []
    words = tuple(dict.fromkeys(filter(None, parts)))
    return Parsed(State.ANSWERED if words else State.ABSTAINED if trimmed and marks else State.UNPARSED, words)


def _words(answer: str, relation: Relation, subject: str) -> tuple[tuple[str, ...], bool]:
    """Return the elements of an answer's literals, else the parts of its first line, and whether a list is empty."""
    groups = read_literals(mended(answer), commas="," in relation.shape.separators)
    empty = any(map(has_empty_list, groups))
    words = [word for group in groups for word in elements(group, relation, subject) if word.whole]
    if any(not word.quoted and word.text in _NULLS for word in words):
        words, empty = [word for word in words if word.quoted or word.text not in _NULLS], True
    if not groups:
        words = parted(answer.split("\n", 1)[0], relation)
    return tuple(text for word in words if (text := word.text.strip())), empty or any(not word.text for word in words)
