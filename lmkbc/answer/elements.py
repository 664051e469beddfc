"""The answer's place in a model's text, and the words of its literals that are objects.

An answer stands behind the reasoning, behind a mark such as "Answer:", or in a fence. Objects are the words of lists,
of JSON objects under certain keys, and of triples.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lmkbc.answer.abstain import relation_words
from lmkbc.answer.literal import Bracketed, Word
from lmkbc.models.base import answer_of
from lmkbc.names import folded_key, shown
from lmkbc.relation import Relation

SHORT = 60
"""A text without a full stop counts as cut-off reasoning from this many characters on."""


_ANSWER = re.compile(
    r"^[ \t>#*_-]{0,8}(?:so,? |thus,? |therefore,? |hence,? )?(?:the |my )?(?:final |correct |full )?answers?"
    r"(?: is| are)?[*_ ]{0,4}[:=](?:[*_]{1,3}(?=\s|$))?",
    re.IGNORECASE | re.MULTILINE,
)


_FENCE = re.compile(r"```[ \t]*\w*[ \t]*\n?(.*?)(?:```|\Z)", re.DOTALL)


def narrowed(text: str) -> tuple[str | None, bool]:
    """Return the part of a completion with its answer, and whether a mark preceded it.

    The part is None if the completion was cut off before its answer.
    """
    answer = answer_of(text)
    if answer is None:
        return None, False
    marks = list(_ANSWER.finditer(answer))
    if marks:
        answer = answer[marks[-1].end() :]
    fences = [fence for fence in _FENCE.findall(answer) if shown(fence)]
    return shown(shown(fences[-1] if fences else answer).strip(" \t\r\n`")), bool(marks)


def broken_off(texts: Sequence[str | None]) -> list[bool]:
    """Return which of a query's draws ended before their answer.

    If other draws mark their answer behind a reasoning, a long draw without a mark is reasoning alone. Its names are
    then no answers.
    """
    marks = [_ANSWER.search(answer_of(text) or "") if text else None for text in texts]
    if not any(mark and mark.start() > SHORT for mark in marks):
        return [False] * len(texts)
    return [text is not None and mark is None and len(text) > SHORT for text, mark in zip(texts, marks, strict=True)]


_LOST_OPENING = re.compile(r"""[^\[\]{}()"'\n]{1,200}(["']),\s*["']""")


_LOST_CLOSING = re.compile(r"""[^\[\]{}()"'\n]{1,200}(["'])\]""")


_ANSWER_KEYS = frozenset(
    "answer answers object objects objectentities entity entities result results value values item items list output "
    "prediction predictions finalanswer name names label number count response completion".split()
)


_OTHER_KEYS = frozenset(
    "subject subjectentity relation predicate property reasoning reason explanation thought thoughts confidence score "
    "probability note notes comment type id year date qid description source unit status".split()
)


def mended(text: str) -> str:
    """Return a text with the opening bracket and quote added that prompts like "...: ['" already contain."""
    if text[:1] in ('"', "'", "“"):
        return f"[{text}"
    if (lost := _LOST_OPENING.match(text)) or (lost := _LOST_CLOSING.fullmatch(text)):
        return f"[{lost[1]}{text}"
    return text


def has_empty_list(group: Bracketed) -> bool:
    """Return whether a literal holds an empty list, which means that there is no object."""
    inner = (item for item in group.items if isinstance(item, Bracketed))
    return (group.closed and not group.items) or any(map(has_empty_list, inner))


def elements(group: Bracketed, relation: Relation, subject: str) -> Iterator[Word]:
    """Yield the words of a literal that are objects: no keys, and no subject or relation of a triple."""
    items = group.items
    if any(item.key is not None for item in items):
        items = _answer_fields(items, relation)
    elif items and isinstance(items[0], Word):
        items = _behind_subject(group, relation, subject)
    for item in items:
        if isinstance(item, Bracketed):
            yield from elements(item, relation, subject)
        else:
            yield item


def _answer_fields(items: list[Word | Bracketed], relation: Relation) -> list[Word | Bracketed]:
    """Return the values of a JSON object that hold the answer.

    These are the values of known answer keys; if there are none, of all keys except those known for other content. Of
    the latter, lists come before other values, and keys with a word of the object type before others.
    """
    keyed = [(folded_key(item.key or "").replace(" ", ""), item) for item in items]
    names = _ANSWER_KEYS | {folded_key(name).replace(" ", "") for name in relation.spellings()}
    others = [item for key, item in keyed if key not in _OTHER_KEYS]
    others = [item for item in others if isinstance(item, Bracketed)] or others
    noun = {word.removesuffix("s") for word in folded_key(relation.object_type.noun).split()}
    typed = [item for item in others if any(word.removesuffix("s") in noun for word in _key_words(item))]
    return [item for key, item in keyed if key in names] or typed or others


def _key_words(item: Word | Bracketed) -> list[str]:
    return folded_key((item.key or "").replace("_", " ")).split()


def _behind_subject(group: Bracketed, relation: Relation, subject: str) -> list[Word | Bracketed]:
    """Return the items behind subject and relation in a triple; all items if the literal is no triple."""
    items = group.items
    words = [item.text for item in items if isinstance(item, Word)]
    if group.bracket == "(" and len(words) < len(items):
        return [item for item in items if isinstance(item, Bracketed)]
    about_subject = folded_key(words[0]) == folded_key(subject)
    phrase = folded_key(words[1]).split() if len(words) > 1 else []
    shared = len(relation_words(relation).intersection(phrase))
    # half of the words of "Potomac River" or "New York Stock Exchange" may be the relation's, yet they are objects in
    # a plain list; a relation holds the whole phrase, or follows the subject
    related = bool(phrase) and (2 if group.bracket == "(" or about_subject else 1) * shared >= len(phrase)
    if len(items) > 2 and (related or (about_subject and group.bracket == "(")):
        return items[2:]
    return items[1:] if about_subject and (group.bracket == "(" or len(words) < len(items)) else items
