"""Prompts: relation, query and examples as text or chat turns, composed of ordered blocks.

The blocks are role, task line, knowledge, examples, context, query and cue. All subjects with the same examples share
the blocks up to the examples, so a server or a local model encodes these once. Names of subjects and objects are never
interpreted: braces in them stay braces, and line breaks become spaces.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from lmkbc.ask.slots import fill, one_line
from lmkbc.ask.style import FOUND, PromptStyle
from lmkbc.models.base import Message, Prompt
from lmkbc.relation import Relation
from lmkbc.types import Example, Query

KEPT = 16
"""Maximum number of static parts of prompts in a composer's cache; queries with the same examples share one."""
RECALLED = 3
"""Maximum number of statements in an example's recall line, so that long lists leave room for other examples."""


class Composer:
    """Composes the prompts of one relation's queries.

    relations: by the edition's names. relation: its name there. edition: source of the cardinalities in the knowledge
    block.
    """

    def __init__(
        self, style: PromptStyle, relations: Mapping[str, Relation], relation: str, *, edition: str = ""
    ) -> None:
        self._style, self._relations, self._relation, self._edition = style, relations, relation, edition
        self._writer = _Writer(style, relations[relation], edition)
        self._static = lru_cache(maxsize=KEPT)(self._composed_static)

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
        """Return the part before the query: role, task, knowledge and examples."""
        style, relations = self._style, self._relations
        writers = [(shot, _Writer(style, relations[shot.query.relation], self._edition)) for shot in shots]
        header = self._writer.header(self._relation)
        if style.form == "chat":
            turns = [Message("system", header)] if header else []
            for shot, its in writers:
                turns += Message("user", its.asked(shot)), Message("assistant", its.answer(shot))
            return tuple(turns)
        blocks = [f"{header}{style.task_end}"] if header else []
        blocks += [its.asked(shot) + its.reply(shot) + style.gap for shot, its in writers]
        return (Message(style.speaker, "".join(blocks)),) if any(blocks) else ()


def target(style: PromptStyle, relations: Mapping[str, Relation], shot: Example, *, edition: str = "") -> str:
    """Return the answer of an example as it follows its question; in a text, up to and with the stop."""
    writer = _Writer(style, relations[shot.query.relation], edition)
    if style.form == "chat":
        return writer.answer(shot)
    reply = writer.reply(shot)
    return reply if style.form == "single" or reply.endswith(style.stops) else reply + style.stops[0]


def worded(template: str, style: PromptStyle, relations: Mapping[str, Relation], query: Query, **slots: str) -> str:
    """Return a template of the style, filled for a query."""
    writer = _Writer(style, relations[query.relation], "")
    return writer.filled(template, query, asked=writer.ask(query), **slots)


class _Writer:
    """Writes the blocks of one relation's prompts in one style."""

    def __init__(self, style: PromptStyle, relation: Relation, edition: str) -> None:
        self._style = style
        self._relation = relation
        self._edition = edition
        self._frame = style.frame

    def header(self, relation: str) -> str:
        """Return role, task line and knowledge. relation: its name in the edition."""
        style = self._style
        values = self._values(Query("", relation))
        lines = [fill(style.role, values), fill(style.task, values)]
        if style.style != "record":
            lines += [f"{name}: {value}." for name, value in self._knowledge()]
        if style.recall:
            lines.append('First recall in one line what you know, then write the answer in a line after "Answer:".')
        return "\n".join(line for line in lines if line)

    def ask(self, query: Query) -> str:
        """Return the block that asks for a query's objects; in a text, it ends where the answer begins."""
        return self.filled(self._frame.block, query, cue=self._frame.cue)

    def asked(self, shot: Example) -> str:
        """Return the block that asks for an example's objects, in the example's own words if it has any."""
        return self.filled(self._frame.block, shot.query, cue=self._frame.cue, **dict(shot.words))

    def answer(self, shot: Example) -> str:
        """Return the good answer of an example."""
        style, relation, template = self._style, self._relation, self._frame.answer
        ids = [gold.id for gold in shot.objects if gold.id]
        objects = ids if style.objects == "ids" else list(map(one_line, shot.names))
        if style.number and relation.has_numbers():
            objects = [fill(style.number, {"number": one, "unit": relation.unit or ""}) for one in objects]
        writers = {"recalled": self._recalled, "reasoning": self._reasoned}
        texts = {slot: write(shot) for slot, write in writers.items() if f"{{{slot}}}" in template}
        objects = sorted(objects) if style.ordered else objects
        slots = {"answer": style.listed(objects, relation), **texts, **dict(shot.words)}
        return self.filled(template, shot.query, **slots)

    def reply(self, shot: Example) -> str:
        """Return the answer of an example as it follows its block: after a space, unless there is white space."""
        answer = self.answer(shot)
        return answer if self._frame.block[-1:].isspace() or answer[:1].isspace() else f" {answer}"

    def own(self, query: Query, context: str, slots: Mapping[str, str]) -> str:
        """Return the query's part: the context found for it, and the question as the style words it."""
        question = self.ask(query)
        if self._style.ask:
            question = self.filled(self._style.ask, query, asked=question, **slots)
        if self._style.expand and FOUND in slots:
            question = self.filled(self._style.expand.ask, query, asked=question, **slots)
        return (
            f"Context: {context.strip()}\n\n{question}" if context.strip() and not self._style.follow_up else question
        )

    def filled(self, template: str, query: Query, **slots: str) -> str:
        """Return a template, filled for a query."""
        return fill(template, self._values(query) | slots)

    def _values(self, query: Query) -> dict[str, str]:
        relation, subject = self._relation, one_line(query.subject)
        words = " ".join(re.findall("[A-Z]?[a-z]+|[A-Z]+", query.relation)[1:]).lower()
        apart = self._style.apart
        name, parted, place = subject.partition(apart) if apart else (subject, "", "")
        phrase = {"name": query.relation, "words": words, "phrase": relation.triple}[self._style.wording]
        return {
            "subject": subject,
            "subject_name": name,
            "subject_place": parted + place,
            "phrase": phrase,
            "quoted_subject": json.dumps(subject, ensure_ascii=False),
            "quoted_phrase": json.dumps(phrase, ensure_ascii=False),
            "identifier": f" ({query.subject_id})" if query.subject_id else "",
            "question": fill(relation.question, {"subject": subject}),
            "cloze": fill(relation.clozes[0], {"subject": subject, "mask": "___"}),
            "subject_type": relation.subject_type.noun,
            "object_type": relation.object_type.noun,
            "property": relation.property,
            "definition": relation.definition,
            "knowledge": "".join(f"\n{name}: {value}" for name, value in self._knowledge()),
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

    def _knowledge(self) -> list[tuple[str, str]]:
        relation, blocks = self._relation, self._style.knowledge
        lines: list[tuple[str, str]] = []
        if "types" in blocks:
            lines += [("Subject type", relation.subject_type.noun), ("Object type", relation.object_type.noun)]
        if "property" in blocks:
            lines.append(("Wikidata property", relation.property))
        if "definition" in blocks:
            lines.append(("Meaning", relation.definition.rstrip(".")))
        if "cardinality" in blocks and (number := self._cardinality()):
            lines.append(("Number of answers", number))
        return lines

    def _recalled(self, shot: Example) -> str:
        subject = one_line(shot.query.subject)
        facts = [
            fill(self._relation.statement, {"subject": subject, "object": one_line(name)})
            for name in shot.names[:RECALLED]
        ]
        return " ".join(facts) or f"Nothing of this kind is known of {subject}."

    def _reasoned(self, shot: Example) -> str:
        """Return the steps to an example's answer: the type of the subject, some facts, and the conclusion."""
        relation, subject, names = self._relation, one_line(shot.query.subject), list(map(one_line, shot.names))
        kind = relation.subject_type.noun
        steps = [f"{subject} is {'an' if kind[0] in 'aeiou' else 'a'} {kind}.", self._recalled(shot)]
        if relation.unit:
            steps.append(f"So the number, in {relation.unit}, is {names[0]}." if names else "")
        elif len(names) > 1:
            steps.append(f"That makes {len(names)} to name{', with those not told here' * (len(names) > RECALLED)}.")
        else:
            steps.append(f"So {names[0]} is the only one to name." if names else "So there is none to name.")
        return " ".join(step for step in steps if step)
