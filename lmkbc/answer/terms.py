"""Terms by which a relation's declaration speaks of itself and of its objects, compared by the stems of their words."""

from __future__ import annotations

import re
from functools import lru_cache

from lmkbc.names import folded_key
from lmkbc.relation import Relation

_SLOT = re.compile(r"\{\w+\}")
_STOP = frozenset(
    "the and which that who what whom whose has have had was were are for with from its this these those does did not "
    "been being itself when where while each every all any one other such than then there their into out".split()
)


def object_terms(relation: Relation) -> frozenset[str]:
    """Return the terms for a relation's objects: the words of their type."""
    return stems(relation.object_type.noun)


def phrase_terms(relation: Relation) -> frozenset[str]:
    """Return the terms of the verb phrase between subject and object."""
    return stems(relation.triple)


def terms(relation: Relation) -> frozenset[str]:
    """Return all terms of a relation's declaration, and those for an answer."""
    texts = (relation.object_type.noun, relation.triple, relation.question, relation.definition, *relation.clozes)
    return stems(*texts, "answer")


def has_term(text: str, known: frozenset[str]) -> bool:
    """Return whether a folded text holds any of some terms."""
    return not known.isdisjoint(map(_stem, text.split()))


def is_made_of(text: str, known: frozenset[str]) -> bool:
    """Return whether all words of a folded text are terms."""
    return bool(text) and known.issuperset(map(_stem, text.split()))


@lru_cache(maxsize=1024)
def stems(*texts: str) -> frozenset[str]:
    """Return the words of texts as terms, without words that state nothing."""
    words = folded_key(_SLOT.sub(" ", "\n".join(texts))).split()
    return frozenset(_stem(word) for word in words if len(word) > 2 and word not in _STOP)


@lru_cache(maxsize=4096)
def _stem(word: str) -> str:
    """Return a word without the endings of plurals and of verbs."""
    return re.sub(r"(?:ies|y|ed|es|s|ing|er|ers|e)$", "", word) if len(word) > 3 else word
