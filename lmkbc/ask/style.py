"""Form, wording and templates of prompts: a recipe's table, with checks of its slots and stops."""

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
"""Slots of a frame, filled for one query."""

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
"""Templates of a style -> their slots; `ask` also has the slots that steps fill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptStyle:
    """Form, wording and templates of prompts, as in a recipe.

    form: "completion" is one text that the model completes. The form "single" is the same text as one message of
    `speaker`. The form "chat" has the instructions as system turn, and each example as a user and an assistant turn.
    style: form of the question.
    listing: form of the objects.
    null: text for no object.
    objects: names, or QIDs.
    role, task: templates over {subject_type}, {object_type}, {phrase}, {property}, {definition} and {null}.
    ask: template of the query alone, over {subject}, {question}, {cloze} and the above. The slot {cardinality} is the
    edition's number of objects, and {asked} is the question as in the examples.
    steps: earlier questions, whose answers fill slots of `ask` by the steps' names. If the query becomes several
    questions, their answers are united.
    follow_up: second user turn after the first answer, over the slots of `ask` and {context}, which is then shown only
    here. The second answer counts. Without context, the first answer stands.
    repair: separate prompt for an answer that is no list, over {answer} and {list}, an example of the list form.
    knowledge: facts about the relation to show; in every record for style "record", once for other styles.
    cue: end of a text, before the answer.
    recall: whether the model first writes what it knows.
    block, answer: templates of the question and the answer in examples and query, which replace the style's. The slot
    {answer} is for the objects, {recalled} for known facts, and {reasoning} for steps to the answer. The steps are the
    subject's type, its facts and the number of objects. Replies are read by the same template.
    apart: text such as " in " that separates a subject's name from its place, for the slots {subject_name} and
    {subject_place}, which begins with it.
    ordered: whether to sort the objects of examples alphabetically; else they are in train's order.
    parse_as: reading of a reply. The value "any" accepts any form that names objects. The value "line" reads the line
    that begins with the text before {answer}; if there is none, or if two disagree, there is no answer. The value
    "split" cuts at every separator of the listing, also within names.
    most: maximum number of names of a draw that count, from the first; 0 for all.
    number: template of a number, over {number} and {unit}.
    separator: text between examples.
    task_end: text between the instructions and the rest of a text.
    stop: texts that end an answer in a completion.
    wording: form of {phrase}: the relation's verb phrase, its name in the edition, or that name's words without the
    first ("has states" for CountryHasStates).
    speaker: role of the message for form "single".
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
        """Raise ValueError for a wrong value or slot."""
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
        """Return the templates of question and answer."""
        built_in = (TURNS if self.form == "chat" else TEXTS)[self.style]
        answer, cue = built_in.answer, self.cue or built_in.cue
        if self.recall:
            answer = RECALL + answer
            if self.form != "chat":
                cue = "\nWhat is known:" if self.style == "triple" else "What is known:"
        return Frame(self.block or built_in.block, self.answer or answer, cue)

    @property
    def mark(self) -> str:
        """Return the text before {answer} on its line; "" if text follows {answer} there."""
        before, _, after = self.frame.answer.partition("{answer}")
        return "" if after.partition("\n")[0].strip() else SLOT.split(before)[-1].rpartition("\n")[2].strip()

    @property
    def gap(self) -> str:
        """Return the text between examples."""
        several_lines = "\n" in self.frame.block + self.frame.answer or self.listing == "line"
        return self.separator or ("\n\n" if several_lines else "\n")

    @property
    def stops(self) -> tuple[str, ...]:
        """Return the texts that end an answer when a base model completes a text."""
        return self.stop or (("\n\n",) if "\n" in self.frame.answer or self.listing == "line" else ("\n",))

    @property
    def brackets(self) -> bool:
        """Return whether an answer is a list in brackets, so that it ends with them."""
        return self.listing in ("json", "python")
