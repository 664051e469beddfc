"""Names as a model wrote them: nothing is trimmed or left out, and no word is taken for an empty answer.

Systems that do not clean answers, or clean them later, read them this way; `parse` and `clean` serve the others.
"""

from __future__ import annotations

from lmkbc.answer.abstain import is_mute
from lmkbc.answer.elements import elements, mended, narrowed
from lmkbc.answer.listing import parted
from lmkbc.answer.literal import has_empty_list, read_literals
from lmkbc.answer.parse import LONGEST_ANSWER, Parsed
from lmkbc.ask.frames import JOINTS, Listing
from lmkbc.relation import Relation
from lmkbc.types import State

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
