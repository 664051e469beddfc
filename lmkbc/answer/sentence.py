"""Names in sentences that state the relation, as in "It shares a land border with Chile and Bolivia."."""

from __future__ import annotations

import re

from lmkbc.answer.terms import has_term, terms
from lmkbc.names import folded_key
from lmkbc.relation import Relation

LONGEST = 600
"""Maximum number of characters of a clause."""

_CLAUSE = re.compile(r"(?<=[^\W\d_]{3}[.!?])\s|\n|;\s|,? but |, while ")
_DENIED = re.compile(r"\b(?:not|no|none|never|neither|nor|nobody|without|cannot|\w+n['’]t)\b", re.IGNORECASE)
_AFRESH = re.compile(
    r"\W*(?:so|therefore|thus|hence|actually|wait|sorry|correction|in conclusion|in summary|overall"
    r"|the (?:final )?answer)\b",
    re.IGNORECASE,
)
"""Words by which a clause replaces what was said before."""
_WHERE = re.compile(
    r"\s+(?:to|in|on|along) (?:the|its) (?:far )?(?:north|south|east|west|centre|center)[\w-]*"
    r"(?: \w+(?= (?:and|by)\b))?",
    re.IGNORECASE,
)
_CONNECTING = frozenset("and or of the & de da di do du del la le el al bin ibn van von der den des y e et".split())
"""Words in lower case inside names and between them."""
_BETWEEN = frozenset(
    "is are was were be been by with on in at to of for the a an only include includes including following as namely "
    "both its just also it them him her january february march april may june july august september october november "
    "december".split()
)
"""Words between what states the relation and the names."""
_VERBS = frozenset("is are was were include includes".split())


def named(text: str, relation: Relation, subject: str) -> str:
    """Return the names, a line for each clause, that a text's clauses state of the relation; "" if none does.

    They stand behind a word of the relation, such as "borders", "countries" or "died", with only such words between as
    "are" and "with". A clause with a denial before the names does not count; a later "so" or "wait" begins afresh.
    """
    found: list[str] = []
    for clause in _CLAUSE.split(text):
        if len(clause) <= LONGEST and (names := _names_of(clause.strip(" \t.!"), relation, subject)):
            found = [*([] if _AFRESH.match(clause) else found), names]
    return "\n".join(found)


def _names_of(clause: str, relation: Relation, subject: str) -> str:
    plain = re.sub(rf"(?:\bof )?\b{re.escape(subject)}(?:['’]s)?(?!\w)", "", clause) if subject else clause
    restates = plain != clause and clause[:4] == "The "  # as in "The book of Some Subject is ..."
    words = _WHERE.sub("", plain).split()
    for start in range(len(words) - 1, 0, -1):
        before = start - 1
        while before and (words[before].casefold().strip(":,") in _BETWEEN or words[before].strip(",").isdigit()):
            before -= 1
        states = has_term(folded_key(words[before]), terms(relation))
        states |= words[0] == "There" and words[start - 1].endswith(":")
        if not (states or (restates and words[start - 1] in _VERBS)) or not _is_capitalised(words[start]):
            continue
        if _is_capitalised(words[before]) and (before or words[start - 1] not in _VERBS):  # inside a name
            continue
        if _DENIED.search(" ".join(words[:start])):
            return ""
        end = start
        while end < len(words) and (_is_capitalised(words[end]) or words[end].casefold().strip(",") in _CONNECTING):
            end += 1
        while words[end - 1].casefold() in _CONNECTING:
            end -= 1
        return " ".join(words[start:end])
    return ""


def _is_capitalised(word: str) -> bool:
    return word.lstrip("\"'“‘*_([")[:1].isupper()
