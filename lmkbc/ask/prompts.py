"""Prompts: relation, query and examples as text or chat turns, composed of ordered blocks.

The blocks are task, examples, context and query. All subjects with the same examples share the blocks up to the
examples, so a server or a local model encodes these once. Names of subjects and objects are never interpreted: braces
in them stay braces, and line breaks become spaces.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from lmkbc.ask.slots import fill, one_line
from lmkbc.ask.steps import FOUND
from lmkbc.ask.style import PromptStyle
from lmkbc.ask.templates import outline, render
from lmkbc.kinds.kind import kind_of
from lmkbc.models.base import Message, Prompt
from lmkbc.relation import Relation
from lmkbc.types import Example, Query

KEPT = 16
"""Maximum number of static parts of prompts in a composer's cache; queries with the same examples share one."""
WORKED = 1024
"""Maximum number of worked examples in it, which shorter prompts share."""
RECALLED = 3
"""Maximum number of statements in an example's recall line, so that long lists leave room for other examples."""


KNOWN = "{{ facts | join(' ') or 'Nothing of this kind is known of ' ~ subject ~ '.' }}"
"""Template of what is known in an example."""
REASONING = (
    "{{ subject }} is {{ 'an' if subject_type[0] in 'aeiou' else 'a' }} {{ subject_type }}. {{ recalled }}"
    "{% if unit %}{% if names %} So the number, in {{ unit }}, is {{ names[0] }}.{% endif %}"
    "{% elif names | length > 1 %} That makes {{ names | length }} to name"
    "{% if names | length > facts | length %}, with those not told here{% endif %}."
    "{% elif names %} So {{ names[0] }} is the only one to name."
    "{% else %} So there is none to name.{% endif %}"
)
"""Template of the steps to an example's answer: the type of the subject, some facts, and the conclusion."""


class Composer:
    """Composes the prompts of one relation's queries.

    relations: by the edition's names. relation: its name there. edition: source of the cardinalities.
    """

    def __init__(
        self, style: PromptStyle, relations: Mapping[str, Relation], relation: str, *, edition: str = ""
    ) -> None:
        self._style, self._relations, self._relation, self._edition = style, relations, relation, edition
        self._writer = _Writer(style, relations[relation], edition)
        self._static = lru_cache(maxsize=KEPT)(self._composed_static)
        self._worked = lru_cache(maxsize=WORKED)(self._composed_example)

    def prompt(
        self,
        query: Query,
        shots: Sequence[Example] = (),
        *,
        context: str = "",
        slots: Mapping[str, str] | None = None,
    ) -> Prompt:
        """Return the prompt of one query of the relation.

        shots: worked examples, in order. context: retrieved or recalled text, shown before the query. slots: values
        from steps.
        """
        style = self._style
        own = self._writer.own(query, context, slots or {})
        speaker = "user" if style.form == "chat" else style.speaker
        return Prompt(self._static(tuple(shots)), (Message(speaker, own),), style.form)

    def _composed_static(self, shots: tuple[Example, ...]) -> tuple[Message, ...]:
        """Return the part before the query: task and examples."""
        style = self._style
        header = self._writer.filled(style.task, Query("", self._relation))
        if style.form == "chat":
            turns = [Message("system", header)] if header else []
            for asked, answer in map(self._worked, shots):
                turns += Message("user", asked), Message("assistant", answer)
            return tuple(turns)
        blocks = [header if header[-1:].isspace() else f"{header}\n\n"] if header else []
        blocks += map("".join, map(self._worked, shots))
        return (Message(style.speaker, "".join(blocks)),) if any(blocks) else ()

    def _composed_example(self, shot: Example) -> tuple[str, str]:
        """Return the question of an example, and its answer as it follows it; in a text, with the gap behind it."""
        its = _Writer(self._style, self._relations[shot.query.relation], self._edition)
        return its.asked(shot), its.answer(shot) if self._style.form == "chat" else its.reply(shot) + self._style.gap


def target(style: PromptStyle, relations: Mapping[str, Relation], shot: Example, *, edition: str = "") -> str:
    """Return the answer of an example as it follows its question; in a text, up to and with the stop."""
    writer = _Writer(style, relations[shot.query.relation], edition)
    if style.form == "chat":
        return writer.answer(shot)
    reply = writer.reply(shot)
    return reply if style.form == "single" or reply.endswith(style.stops) else reply + style.stops[0]


def worded(template: str, style: PromptStyle, relations: Mapping[str, Relation], query: Query, /, **slots: str) -> str:
    """Return a template of the style, filled for a query."""
    writer = _Writer(style, relations[query.relation], "")
    return writer.filled(template, query, asked=writer.ask(query), **slots)


class _Writer:
    """Writes the blocks of one relation's prompts in one style."""

    def __init__(self, style: PromptStyle, relation: Relation, edition: str) -> None:
        self._style = style
        self._relation = relation
        self._edition = edition
        self._block, self._answer = style.frame

    def ask(self, query: Query) -> str:
        """Return the block that asks for a query's objects; in a text, it ends where the answer begins."""
        return self.filled(self._block, query)

    def asked(self, shot: Example) -> str:
        """Return the block that asks for an example's objects, in the example's own words if it has any."""
        return self.filled(self._block, shot.query, **dict(shot.words))

    def answer(self, shot: Example) -> str:
        """Return the good answer of an example."""
        names = [one_line(kind_of(self._relation).said(name, self._relation)) for name in shot.names]
        objects = [gold.id for gold in shot.objects if gold.id] if self._style.writes_ids else names
        words: dict[str, str | list[str]] = {"answer": self._style.listed(objects, self._relation), "objects": objects}
        facts = [{"subject": one_line(shot.query.subject), "object": name} for name in names[:RECALLED]]
        known = {"names": names, "facts": [fill(self._relation.statement, fact) for fact in facts]}
        for name, template in (("recalled", KNOWN), ("reasoning", REASONING)):
            words[name] = self.filled(template, shot.query, **known, **words)
        return self.filled(self._answer, shot.query, **(words | dict(shot.words)))

    def reply(self, shot: Example) -> str:
        """Return the answer of an example as it follows its block: after a space, unless there is white space."""
        answer = self.answer(shot)
        return answer if outline(self._block)[-1:].isspace() or answer[:1].isspace() else f" {answer}"

    def own(self, query: Query, context: str, slots: Mapping[str, str]) -> str:
        """Return the query's part: the context found for it, and the question as the style words it."""
        question = self.ask(query)
        if self._style.ask:
            question = self.filled(self._style.ask, query, asked=question, **slots)
        if self._style.expand and FOUND in slots:
            question = self.filled(self._style.expand.ask, query, asked=question, **slots)
        shown = context.strip() if self._style.opens_with_context else ""
        return f"Context: {shown}\n\n{question}" if shown else question

    def filled(self, template: str, query: Query, /, **further: str | list[str]) -> str:
        """Return a template, filled for a query."""
        return render(template, self._values(query) | further)

    def _values(self, query: Query) -> dict[str, str | list[str]]:
        relation, subject = self._relation, one_line(query.subject)
        return {
            "subject": subject,
            "subject_id": query.subject_id or "",
            "phrase": relation.triple,
            "relation": query.relation,
            "relation_words": " ".join(re.findall("[A-Z]?[a-z]+|[A-Z]+", query.relation)[1:]).lower(),
            "question": fill(relation.question, {"subject": subject}),
            "cloze": fill(relation.clozes[0], {"subject": subject, "mask": "___"}),
            "subject_type": relation.subject_type.noun,
            "object_type": relation.object_type.noun,
            "property": relation.property,
            "definition": relation.definition,
            "unit": relation.unit or "",
            "cardinality": self._cardinality() or "any number of",
            "null": self._style.null,
        }

    def _cardinality(self) -> str:
        """Return the number of objects per subject in the edition, in words; "" if unknown."""
        if self._edition not in self._relation.cardinality:
            return ""
        fewest, most = self._relation.cardinality[self._edition]
        return f"from {fewest} to {most}" if fewest < most else str(most)
