"""Form, wording and templates of prompts: a recipe's table, with checks of its templates and stops.

A frame is a pair of templates, for a question about a fact and for its answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

from lmkbc.answer.formats import SCHEMA, AnswerFormat, ParseAs
from lmkbc.ask.steps import FOUND, VERDICTS, Expand, Step, Turn, check_chain
from lmkbc.ask.templates import ANSWER, HELD, check_template, outline, reads
from lmkbc.errors import refuse
from lmkbc.models.base import Form, Role
from lmkbc.registry import LISTINGS
from lmkbc.relation import Relation


def wrong_stop(stops: Sequence[str], block: str, answer: str, separator: str, written: Mapping[str, str]) -> str:
    """Return what is wrong with the stops of a frame, as a sentence; "" if they end an answer, and no earlier.

    block, answer: outlines. written: setting -> text that an answer may also hold.
    """
    before, _, after = answer.partition(ANSWER)
    for stop in stops:
        if not stop:
            return "stop holds an empty text, which ends nothing: leave it out"
        for name, text in {"answer": before, **written}.items():
            if stop in text:
                return f"stop {stop!r} occurs in {name}, {text!r}, so an answer would end there: use another"
    follows = "".join((after.replace(HELD, ""), separator, block.partition(HELD)[0]))
    if not any(stop in follows for stop in stops):
        return f"stop {list(stops)} never occurs: what follows an answer is {follows!r}"
    return ""


VARIABLES = (
    "subject",
    "subject_id",
    "phrase",
    "relation",
    "relation_words",
    "question",
    "cloze",
    "subject_type",
    "object_type",
    "property",
    "definition",
    "unit",
    "cardinality",
    "null",
)
"""Names that every template of a prompt may read."""

_SUBJECT = frozenset(("subject", "question", "cloze", "asked"))
"""Names of texts that name the subject."""

_TEMPLATES = {
    "task": (),
    "ask": ("asked",),
    "block": (),
    "answer": ("answer", "objects", "recalled", "reasoning"),
}
"""Templates of a style -> the names that each may read beside `VARIABLES`; `ask` also has the names of steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptStyle:
    """Form, wording and templates of prompts, as in a recipe.

    A template is Jinja2, as in {{ subject }}. Each reads `subject`, `subject_id`, `question` and `cloze` (of the
    relation, about the subject), `phrase` (its verb phrase), and `relation`, its name in the edition. `relation_words`
    is that name's words without the first ("has states" for CountryHasStates). Each also reads `subject_type`,
    `object_type`, `property`, `definition` and `unit` of the relation, `cardinality`, the edition's number of objects,
    and `null`.

    form: "completion" is one text that the model completes. The form "single" is the same text as one message of
    the user. The form "chat" has the task as system turn, and each example as a user and an assistant turn.
    listing: form of the objects.
    null: text for no object.
    task: template of what stands before the examples. In a text, an empty line follows, unless it ends with a line
    break.
    block: template of the question in examples and query, up to where the answer begins; by default the relation's
    question.
    answer: template of the answer in examples. `answer` is the objects as the listing has them, and `objects` a list
    of them. `recalled` is known facts, and `reasoning` steps to the answer: the subject's type, its facts and the
    number of objects. Replies are read by the same template.
    ask: template of the query alone; `asked` is the question as in the examples.
    steps: earlier questions, whose answers are read in `ask` by the steps' names. If the query becomes several
    questions, their answers are united.
    expand: further rounds in which each draw is asked for other objects.
    separator: text between examples.
    stop: texts that end an answer in a completion.
    parse_as: reading of a reply. The value "any" accepts any form that names objects. The value "line" reads the line
    that begins with the text before the answer; if there is none, or if two disagree, there is no answer. The value
    "split" cuts at every separator of the listing, also within names.
    """

    form: Form = "chat"
    listing: str = "json"
    null: str = "[]"
    task: str = ""
    block: str = ""
    answer: str = ""
    ask: str = ""
    steps: tuple[Step, ...] = ()
    expand: Expand | None = None
    separator: str = ""
    stop: tuple[str, ...] = ()
    parse_as: ParseAs = "any"

    REMOVED: ClassVar[Mapping[str, str]] = {
        "style": 'word the question in block, as in block = "{{ subject }}, {{ phrase }}:"',
        "role": "write it before the task, in task",
        "task_end": "end task with the line breaks that follow it",
        "knowledge": 'write it in task or block, as in "Meaning: {{ definition }}"',
        "recall": 'write answer = "{{ recalled }}\\nAnswer: {{ answer }}", and tell so in task',
        "number": 'write its words in answer, as in answer = "{{ answer }} km"',
        "apart": "cut the subject in the template, as in {{ subject.partition(' in ')[0] }}",
        "ordered": "sort the objects in answer, as in {{ objects | sort | join(', ') }}",
        "wording": "write {{ relation }} or {{ relation_words }} for {{ phrase }}",
    }
    """Settings of earlier releases -> what to write in place of each."""
    writes_ids: ClassVar[bool] = False
    """Whether objects are QIDs."""

    def __post_init__(self) -> None:
        """Raise ValueError for a wrong value or template, InputError for an unknown listing."""
        LISTINGS.check(self.listing)
        filled = tuple(step.name for step in self.steps if step.parse_as not in VERDICTS)
        for field, further in _TEMPLATES.items():
            known = (*VARIABLES, *further, *filled) if field == "ask" else (*VARIABLES, *further)
            check_template(field, getattr(self, field), known)
        check_chain(self.steps, VARIABLES, self.ask)
        if self.expand:
            check_template("expand.ask", self.expand.ask, (*VARIABLES, "asked", *filled, FOUND))
        for field, asked in (("block", self.block), ("ask", self.ask)):
            texts = (asked, *(step.ask for step in self.steps)) if field == "ask" else (asked,)
            if asked and _SUBJECT.isdisjoint(name for text in texts for name in reads(text)):
                named = sorted(_SUBJECT.intersection((*VARIABLES, *_TEMPLATES[field])))
                raise ValueError(f"{field} is {asked!r}: it names no subject, as one of {', '.join(named)} does")
        refuse(
            (
                self.outlines[1].count(ANSWER) != 1,
                f"answer is {self.answer!r}: it needs {{{{ answer }}}} once",
            ),
            (
                self.null == SCHEMA.write(()) and self.format is not SCHEMA,
                f"null is {self.null!r}, an answer of listing 'schema', and listing is {self.listing!r}: write null "
                "and task for this listing",
            ),
            (
                self.stop and self.form != "completion",
                f"stop ends a text that a model goes on with, and form {self.form!r} has none: drop it",
            ),
            (
                self.form != "chat" and any(step.task for step in self.steps),
                f"a step's task is the system turn of a chat, and form is {self.form!r}: put it into its ask",
            ),
            (FOUND in filled, f"a step is called {FOUND!r}, as the list of expand is: give it another name"),
            (
                self.parse_as == "line" and not self.mark,
                "parse_as 'line' knows the line by the words before {{ answer }}: give them, as in answer = 'ANSWER: "
                "{{ answer }}'",
            ),
            (
                self.parse_as == "line" and not self.format.marks,
                f"parse_as 'line' reads names between commas or semicolons, and listing is {self.listing!r}: use "
                + " or ".join(repr(name) for name in LISTINGS if LISTINGS.get(name).marks),
            ),
        )
        if self.form == "completion" and (self.block or self.answer or self.separator or self.stop):
            written = {"null": self.null, "listing": self.format.joint}
            if wrong := wrong_stop(self.stops, *self.outlines, self.gap, written):
                raise ValueError(wrong)

    @property
    def speaker(self) -> Role:
        """Return the role of the message for form "single"."""
        return "user"

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Return what is asked after an answer, in order."""
        return ()

    @property
    def opens_with_context(self) -> bool:
        """Return whether what is found about a query stands before its question."""
        return True

    def counted(self, objects: Sequence[str]) -> Sequence[str]:
        """Return the objects of a draw that count."""
        return objects

    def most_objects(self, tokens: int) -> int:
        """Return the most objects of a draw: each is a name and what separates it from the next one."""
        return tokens // 2 + 1

    @property
    def frame(self) -> tuple[str, str]:
        """Return the templates of question and answer."""
        question = "{{ question }}" if self.form == "chat" else "Question: {{ question }}\nAnswer:"
        return self.block or question, self.answer or "{{ answer }}"

    @property
    def outlines(self) -> tuple[str, str]:
        """Return the outlines of question and answer."""
        block, answer = self.frame
        return outline(block), outline(answer)

    @property
    def mark(self) -> str:
        """Return the text before the answer on its line; "" if text follows the answer there."""
        before, _, after = self.outlines[1].partition(ANSWER)
        return "" if after.partition("\n")[0].strip() else before.split(HELD)[-1].rpartition("\n")[2].strip()

    @property
    def gap(self) -> str:
        """Return the text between examples."""
        return self.separator or ("\n\n" if "\n" in "".join((*self.outlines, self.format.joint)) else "\n")

    @property
    def stops(self) -> tuple[str, ...]:
        """Return the texts that end an answer when a base model completes a text."""
        return self.stop or (("\n\n",) if "\n" in self.outlines[1] + self.format.joint else ("\n",))

    @property
    def format(self) -> AnswerFormat:
        """Return the form of the objects."""
        return cast(AnswerFormat, LISTINGS.get(self.listing))

    def listed(self, objects: Sequence[str], relation: Relation) -> str:
        """Return objects as an answer; in another format if the relation's names may hold the format's separator."""
        form = self.format
        if form.instead and self.parse_as != "split" and form.joint.strip() not in relation.shape.separators:
            form = LISTINGS.get(form.instead)
        return form.typed(objects, relation) if objects else self.null

    def schema(self, relation: Relation) -> str:
        """Return the JSON schema of an answer, as text; "" if its form has none, or more than the list is written."""
        return self.format.schema(relation) if self.outlines[1] == ANSWER and self.parse_as == "any" else ""
