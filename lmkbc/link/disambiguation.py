"""Disambiguation: which of several hits a text means. Strategies run in turn, each narrows or orders the hits.

The strategy "model" ends them: a language model is asked which of the hits that are left is meant, many texts at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from lmkbc.errors import InputError, did_you_mean
from lmkbc.link.evidence import Hit
from lmkbc.link.object_types import ObjectType, bundled
from lmkbc.types import Query


class HitChoice(NamedTuple):
    """Choice for a language model: the hit that a text means, as an answer to the query."""

    query: Query
    text: str
    hits: Sequence[Hit]


Ask = Callable[[Sequence[HitChoice]], Sequence[int | None]]
"""Asks a language model: questions to positions of hits, None where it does not know."""


def by_class(hits: Sequence[Hit], kind: ObjectType) -> Sequence[Hit]:
    """Return hits of the relation's object type; hits of unknown class pass, so that a bare first hit stays one."""
    return [hit for hit in hits if not hit.classes or bundled().fits(hit.classes, kind.qid)]


def by_keyword(hits: Sequence[Hit], kind: ObjectType) -> Sequence[Hit]:
    """Return hits whose description holds a keyword of the type, all of them when none does (LLMKE, linking)."""
    return [hit for hit in hits if any(word in hit.description.casefold() for word in kind.keywords)] or hits


KNOWN = "known"
"""The strategy that needs no hits: a known case of the type is linked before anything is asked for."""

MODEL = "model"
"""The strategy that leaves the choice to a language model."""

STRATEGIES: Mapping[str, Callable[[Sequence[Hit], ObjectType], Sequence[Hit]]] = {
    "class": by_class,
    "keyword": by_keyword,
    "popularity": lambda hits, _: sorted(hits, key=lambda hit: -hit.popularity),
    "first": lambda hits, _: hits[:1],
}
"""Each takes hits and the type of object that is wanted."""


def check(names: Sequence[str], where: str) -> None:
    """Refuse a strategy that does not exist: InputError saying where it is named."""
    known = {KNOWN, MODEL, *STRATEGIES}
    for name in names:
        if name not in known:
            raise InputError(f"{where}: unknown linking strategy {name!r}; {did_you_mean(name, known)}")


def choose(hits: Sequence[Hit], kind: ObjectType) -> tuple[Sequence[Hit], str]:
    """Apply the strategies of a type in turn. Return the hits that are left, the chosen one first, and what led there.

    What led there is the names of the strategies that narrowed or reordered, joined by "+", or why no hit fits. More
    than one hit is left only where a language model is to choose among them.
    """
    if not hits:
        return (), "no hit"
    applied: list[str] = []
    left: Sequence[Hit] = hits
    for name in kind.strategies:
        if name == MODEL:
            return left, "+".join(applied) or "first"
        if name == KNOWN:
            continue
        before, left = left, STRATEGIES[name](left, kind)
        if not left:
            return (), f"no hit fits ({name})"
        if left[0] is not before[0] or len(left) < len(before):
            applied.append(name)
    return left[:1], "+".join(applied) or "first"
