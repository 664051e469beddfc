"""Disambiguation: which of several hits a text means. Strategies run in turn, and each narrows or orders the hits.

The strategy "model" comes last: it asks a language model about the remaining hits, for many texts in one batch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from lmkbc.ask.slots import fill, one_line
from lmkbc.link.hits import Hit, ObjectType, bundled
from lmkbc.models.base import LanguageModel
from lmkbc.models.plain_questions import paragraphs
from lmkbc.registry import STRATEGIES
from lmkbc.relation import Relation
from lmkbc.types import Query


class HitChoice(NamedTuple):
    """A choice for a language model: which of the hits a text means, as an answer to the query."""

    query: Query
    text: str
    hits: Sequence[Hit]


Ask = Callable[[Sequence[HitChoice]], Sequence[int | None]]
"""Function that asks a language model: it maps choices to positions of hits, None if the model does not know."""


_NAMED = re.compile(r"Q?\d+")
"""Number or identifier of a hit, by which a reply names it."""


def by_class(hits: Sequence[Hit], kind: ObjectType) -> Sequence[Hit]:
    """Return hits of the relation's object type. Hits of unknown class are kept."""
    return [hit for hit in hits if not hit.classes or bundled().fits(hit.classes, kind.qid)]


def by_keyword(hits: Sequence[Hit], kind: ObjectType) -> Sequence[Hit]:
    """Return hits whose description holds a keyword of the type; all hits if none does (LLMKE, linking)."""
    return [hit for hit in hits if any(word in hit.description.casefold() for word in kind.keywords)] or hits


def by_popularity(hits: Sequence[Hit], _: ObjectType) -> Sequence[Hit]:
    """Return the hits with the most sitelinks first."""
    return sorted(hits, key=lambda hit: -hit.popularity)


def first(hits: Sequence[Hit], _: ObjectType) -> Sequence[Hit]:
    """Return the first hit alone."""
    return hits[:1]


KNOWN = "known"
"""Strategy that needs no hits: it links a known name of the type before any search."""

MODEL = "model"
"""Strategy that lets a language model choose."""


def choose(hits: Sequence[Hit], kind: ObjectType) -> tuple[Sequence[Hit], str]:
    """Apply the strategies of a type in turn. Return the remaining hits, the chosen one first, and the reason.

    The reason is the names of the strategies that narrowed or reordered the hits, joined by "+", or why no hit fits.
    More than one hit remains only if a language model is to choose.
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
        before, left = left, STRATEGIES.get(name)(left, kind)
        if not left:
            return (), f"no hit fits ({name})"
        if left[0] is not before[0] or len(left) < len(before):
            applied.append(name)
    return left[:1], "+".join(applied) or "first"


def question(about: HitChoice, relation: Relation) -> str:
    """Return the prompt for a choice: the question, its answer, and a numbered list of entities.

    Each entity has its identifier, label and description, as in Zhang et al. 2023 (LLMKE), linking by language model.
    """
    text = one_line(about.text)
    lines = [
        f"{at}. {hit.id}: {one_line(hit.label) or text} ({one_line(hit.description) or 'no description'})"
        for at, hit in enumerate(about.hits, 1)
    ]
    return (
        f"Question: {fill(relation.question, {'subject': one_line(about.query.subject)})}\n"
        f"Answer: {text}\n"
        f"Which {relation.object_type.noun} does the answer mean?\n" + "\n".join(lines) + "\n"
        "Reply with its number only, or 0 if it is none of them."
    )


class AskModel:
    """An `Ask` that calls a language model. A reply that names no hit gives None."""

    def __init__(self, model: LanguageModel, relations: Mapping[str, Relation]) -> None:
        self._model, self._relations = model, relations

    def __call__(self, questions: Sequence[HitChoice]) -> list[int | None]:
        """Return the position of the chosen hit for each question, None if the reply names none.

        Equal prompts are sent once.
        """
        prompts = [question(item, self._relations[item.query.relation]) for item in questions]
        distinct = list(dict.fromkeys(prompts))
        replies = dict(zip(distinct, paragraphs(self._model, distinct), strict=True))
        return [_place(replies[prompt] or "", item.hits) for prompt, item in zip(prompts, questions, strict=True)]


def _place(reply: str, hits: Sequence[Hit]) -> int | None:
    """Return the position of the first hit that a reply names, by number or identifier; None for no hit."""
    places = {hit.id: at for at, hit in reversed([*enumerate(hits)])}
    for named in _NAMED.findall(reply.rpartition("</think>")[2]):
        if named in places:
            return places[named]
        if named.isdigit():
            return int(named) - 1 if 1 <= int(named) <= len(hits) else None
    return None
