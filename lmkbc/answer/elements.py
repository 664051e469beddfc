"""Which words of a literal stand for objects: of lists, of JSON objects by their keys, and of triples."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lmkbc.answer.abstain import relation_words
from lmkbc.answer.literal import Group, Word
from lmkbc.names import folded_key
from lmkbc.relation import Relation

_LOST_OPENING = re.compile(r"""[^\[\]{}()"'\n]{1,200}(["']),\s*["']""")


_LOST_CLOSING = re.compile(r"""[^\[\]{}()"'\n]{1,200}(["'])\]""")


_ANSWER_KEYS = frozenset(
    "answer answers object objects objectentities entity entities result results value values item items list output "
    "prediction predictions finalanswer name names label number count response completion".split()
)


_OTHER_KEYS = frozenset(
    "subject subjectentity relation predicate property reasoning reason explanation thought thoughts confidence score "
    "probability note notes comment type id year date qid description source unit".split()
)


def mended(text: str) -> str:
    """A text with the opening bracket and quote that prompts like "...: ['" leave to their own end."""
    if text[:1] in ('"', "'", "“"):
        return f"[{text}"
    if (lost := _LOST_OPENING.match(text)) or (lost := _LOST_CLOSING.fullmatch(text)):
        return f"[{lost[1]}{text}"
    return text


def has_empty_list(group: Group) -> bool:
    """Whether a literal says in its own way that there is nothing."""
    inner = (item for item in group.items if isinstance(item, Group))
    return (group.closed and not group.items) or any(map(has_empty_list, inner))


def elements(group: Group, relation: Relation, subject: str) -> Iterator[Word]:
    """The words of a literal that stand for objects: no keys, and neither the subject nor the relation of a triple."""
    items = group.items
    if any(item.key is not None for item in items):
        items = _answer_fields(items, relation)
    elif items and isinstance(items[0], Word):
        items = _behind_subject(group, relation, subject)
    for item in items:
        if isinstance(item, Group):
            yield from elements(item, relation, subject)
        else:
            yield item


def _answer_fields(items: list[Word | Group], relation: Relation) -> list[Word | Group]:
    """The values of a JSON object that hold the answer: of a telling key, else of all keys that tell otherwise."""
    keyed = [(folded_key(item.key or "").replace(" ", ""), item) for item in items]
    names = _ANSWER_KEYS | {folded_key(name).replace(" ", "") for name in (relation.name, *relation.names)}
    return [item for key, item in keyed if key in names] or [item for key, item in keyed if key not in _OTHER_KEYS]


def _behind_subject(group: Group, relation: Relation, subject: str) -> list[Word | Group]:
    """What stands behind subject and relation in a triple; all items where the literal is no triple."""
    items = group.items
    words = [item.text for item in items if isinstance(item, Word)]
    if group.bracket == "(" and len(words) < len(items):
        return [item for item in items if isinstance(item, Group)]
    about_subject = folded_key(words[0]) == folded_key(subject)
    phrase = folded_key(words[1]).split() if len(words) > 1 else []
    shared = len(relation_words(relation).intersection(phrase))
    # "Potomac River" or "New York Stock Exchange" in a plain list are objects, though half of their words are the
    # relation's: it has the whole phrase, or the subject before it
    related = bool(phrase) and (2 if group.bracket == "(" or about_subject else 1) * shared >= len(phrase)
    if len(items) > 2 and (related or (about_subject and group.bracket == "(")):
        return items[2:]
    return items[1:] if about_subject and (group.bracket == "(" or len(words) < len(items)) else items
