"""Choosing among hits by asking a language model: the question it is put, and how its reply is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from lmkbc.link.choose import Ask
from lmkbc.link.evidence import Hit
from lmkbc.types import Query, Relation

_NUMBER = re.compile(r"\d+")


def question(query: Query, relation: Relation, text: str, hits: Sequence[Hit]) -> str:
    """The prompt: what was asked, what was answered, and the numbered entities that the answer may mean.

    Identifier, label and description of each hit, as in Zhang et al. 2023 (LLMKE), linking by language model.
    """
    lines = [
        f"{at}. {hit.id}: {hit.label or text} ({hit.description or 'no description'})" for at, hit in enumerate(hits, 1)
    ]
    return (
        f"Question: {relation.question.format(subject=query.subject)}\n"
        f"Answer: {text}\n"
        f"Which {relation.object_type.noun} does the answer mean?\n" + "\n".join(lines) + "\n"
        "Reply with its number only, or 0 if it is none of them."
    )


def asker(complete: Callable[[str], str], relations: Mapping[str, Relation]) -> Ask:
    """A `choose.Ask` from anything that completes a prompt. A reply that names no hit leaves the choice to others."""

    def ask(query: Query, text: str, hits: Sequence[Hit]) -> int | None:
        reply = complete(question(query, relations[query.relation], text, hits))
        numbers = [int(number) for number in _NUMBER.findall(reply)]
        return numbers[0] - 1 if numbers and 1 <= numbers[0] <= len(hits) else None

    return ask
