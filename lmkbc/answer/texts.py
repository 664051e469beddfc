"""Texts and identifiers in replies as they are written, without the markup, labels and sentences around them."""

from __future__ import annotations

import re

from lmkbc.answer.abstain import has_term, stems
from lmkbc.answer.lists import BULLET
from lmkbc.names import folded_key, shown
from lmkbc.relation import Relation

LONGEST_FRAME = 120
"""Maximum number of characters before the object in a sentence that states it."""

_WRAPPED = re.compile(r"""(\*\*|__|[*_`"“«'‘])(?=\S)(.+?)(?:\1|["”»'’])(?<=\S)\.?""", re.DOTALL)
_MARKED = re.compile(r"\*\*([^*\n]+)\*\*|__([^_\n]+)__|`([^`\n]+)`|[\"“«]([^\"“”«»\n]+)[\"”»]")
_LABEL = re.compile(r"[*_]*([^\W\d_][^:*_\n]{0,40}?)[*_]*:[*_]*\s+(?=\S)")
_STATING = re.compile(r"\s(?:is|are|was|were|reads?|includes?|says?)(?: given as| listed as)?:?\s+(?=\S)")


def texts(lines: list[str], relation: Relation, subject: str) -> list[str]:
    """Return the objects in the lines of a reply: those of its bullets if it has any, else the first line's."""
    bullets = [line[found.end() :] for line in lines if (found := BULLET.match(line))]
    heads = [line for line in lines if not line.rstrip(" *_").endswith(":")] or lines
    return [text for line in bullets or heads[:1] if (text := bare(line, relation, subject))]


def bare(text: str, relation: Relation, subject: str) -> str:
    """Return a text without what stands around it; "" for a sentence where an identifier is asked."""
    known = stems(relation.statement, *relation.clozes, relation.object_type.noun)
    text = shown(text)
    while (label := _LABEL.match(text)) and (
        folded_key(label[1]) == folded_key(subject) or has_term(folded_key(label[1]), known | {"id"})
    ):
        text = text[label.end() :]
    stating = _STATING.search(text[:LONGEST_FRAME])
    if stating and has_term(folded_key(text[: stating.start()]), known):
        text = _of_sentence(text[stating.end() :])
    elif 0 <= (at := text.find(f"{relation.triple} ")) < LONGEST_FRAME:
        text = _of_sentence(text[at + len(relation.triple) :])
    plain = unwrapped(text)
    if relation.kind != "identifier":
        return plain
    is_sentence = plain == text and text[-1:] == "." and text.count(" ") > 1 and not any(map(str.isdigit, text))
    return "" if is_sentence else plain.rstrip(".,;`")


def _of_sentence(rest: str) -> str:
    """Return the object at the head of what a sentence states: what is marked in it, else all of it."""
    marked = _MARKED.search(rest)
    return next(filter(None, marked.groups())) if marked else rest.strip().rstrip(".")


def unwrapped(text: str) -> str:
    """Return a text without the emphasis or the quotes around all of it."""
    found = _WRAPPED.fullmatch(text)
    return unwrapped(found[2]) if found and found[1] not in found[2] else text
