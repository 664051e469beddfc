"""A language model as judge between hits: its prompts, and how its replies are parsed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from lmkbc.ask.prompts import fill, one_line
from lmkbc.link.disambiguation import HitChoice
from lmkbc.link.evidence import Hit
from lmkbc.models.base import LanguageModel
from lmkbc.relation import Relation

_NAMED = re.compile(r"Q?\d+")


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
    """A `disambiguation.Ask` that calls a language model. A reply that names no hit gives None."""

    def __init__(self, model: LanguageModel, relations: Mapping[str, Relation]) -> None:
        self._model, self._relations = model, relations

    def __call__(self, questions: Sequence[HitChoice]) -> list[int | None]:
        """Return the position of the chosen hit for each question, None if the reply names none.

        Equal prompts are sent once.
        """
        prompts = [question(item, self._relations[item.query.relation]) for item in questions]
        distinct = list(dict.fromkeys(prompts))
        replies = dict(zip(distinct, self._model.paragraphs(distinct), strict=True))
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
