"""Disambiguation: which of several hits a text means. Strategies run in turn, each narrows or orders the hits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lmkbc.errors import InputError, did_you_mean
from lmkbc.link.evidence import Hit
from lmkbc.link.object_types import ObjectType, ObjectTypes
from lmkbc.types import Query

Ask = Callable[[Query, str, Sequence[Hit]], int | None]
"""Asks a language model which hit is meant: (query, text, described hits) -> position, None when it does not know."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What is being chosen: a text, the query it answers, its type, and the tables that strategies read."""

    text: str
    query: Query
    type: ObjectType
    types: ObjectTypes
    ask: Ask | None = None


def by_class(hits: Sequence[Hit], choice: Choice) -> Sequence[Hit]:
    """Hits of the relation's object type; hits of unknown class pass, so that a bare first hit stays one."""
    return [hit for hit in hits if not hit.classes or choice.types.fits(hit.classes, choice.type.qid)]


def by_keyword(hits: Sequence[Hit], choice: Choice) -> Sequence[Hit]:
    """Hits whose description holds a keyword of the type, all of them when none does (LLMKE, linking)."""
    words = choice.type.keywords
    return [hit for hit in hits if any(word in hit.description.casefold() for word in words)] or hits


def by_popularity(hits: Sequence[Hit], _: Choice) -> Sequence[Hit]:
    """Most sitelinks first."""
    return sorted(hits, key=lambda hit: -hit.popularity)


def by_model(hits: Sequence[Hit], choice: Choice) -> Sequence[Hit]:
    """The hit that a language model picks, where one is given and more than one hit is left."""
    picked = choice.ask(choice.query, choice.text, hits) if choice.ask and len(hits) > 1 else None
    return hits if picked is None else [hits[picked]]


def first(hits: Sequence[Hit], _: Choice) -> Sequence[Hit]:
    """The first hit left."""
    return hits[:1]


KNOWN = "known"
"""The strategy that needs no hits: a known case of the type is linked before anything is asked for."""

STRATEGIES: Mapping[str, Callable[[Sequence[Hit], Choice], Sequence[Hit]]] = {
    "class": by_class,
    "keyword": by_keyword,
    "popularity": by_popularity,
    "model": by_model,
    "first": first,
}


def check(names: Sequence[str], where: str) -> None:
    """Refuse a strategy that does not exist: InputError saying where it is named."""
    for name in names:
        if name not in {KNOWN, *STRATEGIES}:
            hint = did_you_mean(name, {KNOWN, *STRATEGIES})
            raise InputError(f"{where}: unknown linking strategy {name!r}; {hint}")


def choose(hits: Sequence[Hit], names: Sequence[str], choice: Choice) -> tuple[Hit | None, str]:
    """The hit and the strategies that told, joined by "+"; (None, reason) when one left nothing that fits."""
    if not hits:
        return None, "no hit"
    told: list[str] = []
    left: Sequence[Hit] = hits
    for name in names:
        if name == KNOWN:
            continue
        before, left = left, STRATEGIES[name](left, choice)
        if not left:
            return None, f"no hit fits ({name})"
        if left[0] is not before[0] or len(left) < len(before):
            told.append(name)
    return left[0], "+".join(told) or "first"
