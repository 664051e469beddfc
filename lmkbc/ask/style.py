"""Form, wording and templates of prompts: a recipe's table, whose slots and ends are checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lmkbc.ask.frames import JOINTS, RECALL, SLOT, TEXTS, TURNS, Frame, Listing, Style, check_slots, wrong_stop
from lmkbc.ask.steps import VERDICTS, Step, check_chain
from lmkbc.errors import refuse
from lmkbc.models.base import Form, Role

Knowledge = Literal["types", "property", "definition", "cardinality"]

_SLOTS = ("subject", "phrase", "question", "cloze", "subject_type", "object_type", "property", "definition", "null")
_ASKED = (*_SLOTS, "cardinality", "asked")

_PARTS = (
    *_SLOTS,
    "subject_name",
    "subject_place",
    "quoted_subject",
    "quoted_phrase",
    "identifier",
    "knowledge",
    "unit",
)
"""Slots of a frame, which are about one query."""

_SUBJECT = ("subject", "subject_name", "quoted_subject", "question", "cloze", "asked")
"""Slots that name the subject."""

_TEMPLATES = {
    "role": _SLOTS,
    "task": _SLOTS,
    "ask": _ASKED,
    "follow_up": (*_ASKED, "context"),
    "repair": (*_SLOTS, "answer", "list"),
    "block": (*_PARTS, "cue"),
    "answer": (*_PARTS, "recalled", "reasoning", "answer"),
    "number": ("number", "unit"),
}
"""The templates of a style, and the slots of each; `ask` has those besides that steps fill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptStyle:
    """Form, wording and templates of prompts, as a recipe's plain data.

    form: "completion" (one text to go on with), "single" (that text as one message of `speaker`), or "chat" (the
    instructions as system turn, each example as a user and an assistant turn). style: how a fact is asked for.
    listing: how objects are written; null: how the lack of any is written. objects: names, or QIDs.
    role, task: templates over {subject_type}, {object_type}, {phrase}, {property}, {definition} and {null}.
    ask: how the query, and only the query, is worded instead, over {subject}, {question}, {cloze}, the above, the
    edition's number of objects, {cardinality}, and {asked}, which asks as examples do.
    steps: what is asked before, whose answers fill slots of ask by the steps' names; where that makes several questions
    of the query, the answers are one.
    follow_up: a second turn once the first is answered, over the slots of ask and {context}, which is told there and
    not before; what it is answered with counts. Where nothing is found to tell, the first answer stands.
    repair: what is asked, by itself, where an answer is no list: {answer} is that answer, {list} how lists look.
    knowledge: what is told of the relation; a record tells it in every record, other styles once.
    cue: what a text ends with before the answer. recall: first what is known, then the answer.
    block, answer: examples and query in words of one's own instead of the style's: what asks, and what answers, with
    {answer} for the objects, {recalled} for what is known, and {reasoning} for that in steps: what the subject is, its
    facts, and how many objects they come to. A reply is read by the same template.
    apart: what parts a subject's name from its place, as " in " does: {subject_name} and {subject_place}, which begins
    with that. ordered: objects of examples by the alphabet, not as train has them.
    parse_as: how a reply is read: in "any" form that names objects, or as the "line" that begins as the template answer
    has it before {answer}. A reply without such a line, or with two that disagree, is none. "split" cuts a reply
    wherever the listing has a mark, within names too. most: names of a draw that count, the first ones; 0: all.
    separator: what parts examples. task_end: what parts the instructions of a text from what follows. stop: what ends
    an answer that a text goes on with.
    wording: relations by their verb phrase, by the name the edition gives them, or by that name's words less the first:
    "has states" for CountryHasStates.
    """

    form: Form = "chat"
    style: Style = "question"
    listing: Listing = "json"
    null: str = "[]"
    objects: Literal["names", "ids"] = "names"
    role: str = ""
    task: str = ""
    ask: str = ""
    steps: tuple[Step, ...] = ()
    follow_up: str = ""
    repair: str = ""
    knowledge: tuple[Knowledge, ...] = ()
    cue: str = ""
    recall: bool = False
    block: str = ""
    answer: str = ""
    apart: str = ""
    ordered: bool = False
    separator: str = ""
    task_end: str = "\n\n"
    stop: tuple[str, ...] = ()
    parse_as: Literal["any", "line", "split"] = "any"
    most: int = 0
    number: str = ""
    wording: Literal["phrase", "name", "words"] = "phrase"
    speaker: Role = "user"

    def __post_init__(self) -> None:
        """Raise ValueError for a value or slot that makes no sense."""
        filled = tuple(step.name for step in self.steps if step.parse_as not in VERDICTS)
        for field, slots in _TEMPLATES.items():
            known = (*slots, *filled) if field == "ask" else slots
            check_slots(field, getattr(self, field), known)
        for field, slot in (("answer", "{answer}"), ("number", "{number}")):
            if (template := getattr(self, field)) and template.count(slot) != 1:
                raise ValueError(f"{field} is {template!r}: it needs {slot} once")
        check_chain(self.steps, _SLOTS, self.ask)
        for field, asked in (("block", self.block), ("ask", self.ask)):
            texts = (asked, *(step.ask for step in self.steps)) if field == "ask" else (asked,)
            if asked and not any(f"{{{slot}}}" in text for slot in _SUBJECT for text in texts):
                named = [slot for slot in _SUBJECT if slot in _TEMPLATES[field]]
                raise ValueError(f"{field} is {asked!r}: it names no subject, as one of {', '.join(named)} does")
        refuse(
            (
                self.repair and "{answer}" not in self.repair,
                "repair asks for a broken answer as a list: show that answer with {answer}",
            ),
            (
                self.follow_up and self.form == "completion",
                "follow_up is a second turn, and form 'completion' has none: use 'single' or 'chat'",
            ),
            (
                self.stop and self.form != "completion",
                f"stop ends a text that a model goes on with, and form {self.form!r} has none: drop it",
            ),
            (
                self.form != "chat" and any(step.task for step in self.steps),
                f"a step's task is the system turn of a chat, and form is {self.form!r}: put it into its ask",
            ),
            (self.most < 0, f"most is {self.most}: give a number of names, or 0 for all"),
            (
                self.parse_as == "line" and not self.mark,
                "parse_as 'line' knows the line by the words before {answer}: give them, as in answer = 'ANSWER: "
                "{answer}'",
            ),
            (
                self.parse_as == "line" and self.listing not in ("comma", "semicolon"),
                f"parse_as 'line' reads names between commas or semicolons, and listing is {self.listing!r}: use "
                "'comma' or 'semicolon'",
            ),
        )
        if self.form == "completion" and (self.block or self.answer or self.separator or self.stop):
            frame, written = self.frame, {"null": self.null, "number": self.number, "listing": JOINTS[self.listing]}
            if wrong := wrong_stop(self.stops, frame.block, frame.answer, self.gap, written):
                raise ValueError(wrong)

    @property
    def frame(self) -> Frame:
        """Return how a fact is asked for and answered."""
        own = (TURNS if self.form == "chat" else TEXTS)[self.style]
        answer, cue = own.answer, self.cue or own.cue
        if self.recall:
            answer = RECALL + answer
            if self.form != "chat":
                cue = "\nWhat is known:" if self.style == "triple" else "What is known:"
        return Frame(self.block or own.block, self.answer or answer, cue)

    @property
    def mark(self) -> str:
        """Return what stands on the line of an answer before its objects; nothing where something follows them."""
        before, _, after = self.frame.answer.partition("{answer}")
        return "" if after.partition("\n")[0].strip() else SLOT.split(before)[-1].rpartition("\n")[2].strip()

    @property
    def gap(self) -> str:
        """Return what stands between examples of a text."""
        several_lines = "\n" in self.frame.block + self.frame.answer or self.listing == "line"
        return self.separator or ("\n\n" if several_lines else "\n")

    @property
    def stops(self) -> tuple[str, ...]:
        """Return what ends an answer when a base model goes on with a text."""
        return self.stop or (("\n\n",) if "\n" in self.frame.answer or self.listing == "line" else ("\n",))

    @property
    def brackets(self) -> bool:
        """Return whether an answer is a list in brackets, so that it ends where they are closed."""
        return self.listing in ("json", "python")
