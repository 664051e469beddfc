"""Form, wording and templates of prompts: a recipe's table, with checks of its templates, stops and steps.

A frame is a pair of templates, for a question about a fact and for its answer. A chain is a list of questions before
the query itself, each of which can use the answers of earlier steps. A step's answer has a name, by which later steps
and the style's `ask` read it. Examples are an account that is then read, an enumeration to pick from, and
the years of an award.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, cast

from lmkbc.answer.formats import AnswerFormat, ParseAs
from lmkbc.ask.templates import ANSWER, HELD, check_template, outline, reads
from lmkbc.components import OF_SYSTEM
from lmkbc.errors import refuse
from lmkbc.models.base import Form, Prompt, Reply, Request, Role, Sampling
from lmkbc.registry import LISTINGS
from lmkbc.relation import Relation
from lmkbc.settings import ReadBy
from lmkbc.types import Query


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


StepKind = Literal["text", "list", "numbers", "span", "gate", "existence"]

VERDICTS = ("gate", "existence")
"""Kinds of steps with a yes or no answer, which no template reads."""

MOST_STEPS = 8
"""Maximum number of steps of a chain."""

MOST_ITEMS = 256
"""Maximum number of questions that a chain may ask for one draw."""

LONGEST_FED = 20_000
"""Maximum number of characters of an answer that a template may read."""

YEARS = 1000, 2100
"""First number that a step reads as a year, and first one above."""


_OF_SAMPLING = ("samples", "temperature", "first_temperature", "max_tokens", "stop")
"""Settings of a step that replace those of its table."""


SPAN = ReadBy("a step with parse_as 'span'", lambda step, *_: step.parse_as == "span")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Step of a chain, as in a recipe.

    name: the name by which templates read its answer.
    task: template of the system turn of a chat.
    ask: template over the names of a style's `ask`, and those of earlier steps.
    items: its answers, instead of a question.
    parse_as: what is read of the answer: the "text", the names of a "list", the "numbers", or the years of a "span",
    `every` years per item. After a "no" to a "gate", the draw names nothing and is not asked further. The share of "no"
    among the draws of an "existence" step is a NIL probability. No template reads either.
    each: whether later questions are asked once per item; else once with all items.
    max: maximum number of items that count, from the first.
    longest: maximum number of characters that count.
    until: the year at which a span without an end stops.
    samples: 1 (all draws continue from one answer) or the table's number (each draw continues from its own answer); any
    number for an existence step.
    temperature, first_temperature, max_tokens, stop: of these answers; the table's if not given.
    """

    name: str
    task: str = ""
    ask: str = ""
    items: tuple[str, ...] = ()
    parse_as: StepKind = "text"
    each: bool = False
    max: int = 20
    longest: int = 2000
    every: Annotated[int, SPAN] = 10
    until: Annotated[int | None, SPAN] = None
    samples: int | None = None
    temperature: float | None = None
    first_temperature: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] | None = None

    REMOVED: ClassVar[Mapping[str, str]] = dict.fromkeys(("widen",), OF_SYSTEM)

    def __post_init__(self) -> None:
        """Raise ValueError for a wrong value."""
        name = repr(self.name)
        bounds = (("max", self.max, MOST_ITEMS), ("longest", self.longest, LONGEST_FED), ("every", self.every, 1000))
        refuse(
            (
                not re.fullmatch(r"[a-z]\w*", self.name),
                f"a step's name is {name}: give a word in small letters, as templates read it",
            ),
            (
                bool(self.ask) == bool(self.items),
                f"step {name} needs something to ask, or a list of items: give one of the two",
            ),
            (
                self.each and self.parse_as in ("text", *VERDICTS),
                f"step {name} goes on with each item, but is parsed as {self.parse_as}, which has none",
            ),
            *(
                (not 1 <= value <= most, f"{bound} of step {name} is {value}: give 1 to {most}")
                for bound, value, most in bounds
            ),
            (
                len(self.items) > MOST_ITEMS,
                f"step {name} has {len(self.items)} items: give {MOST_ITEMS} at most",
            ),
            (
                self.until is not None and not YEARS[0] <= self.until < YEARS[1],
                f"until of step {name} is {self.until}: give a year",
            ),
            (
                self.samples is not None and self.samples < 1,
                f"samples of step {name} is {self.samples}: give at least 1",
            ),
        )

    def span(self, first: int, last: int) -> tuple[int, int]:
        """Return the first year of a span that counts, and the number of years in a slot, at most `max` slots."""
        width = self.every
        while last // width - first // width >= self.max:
            width += self.every
        return first, width

    @property
    def branches(self) -> int:
        """Return the largest number of questions that it makes of one."""
        return len(self.items) or (self.max if self.each else 1)

    def sampling(self, table: Sampling) -> Sampling:
        """Return the sampling of its answers. Raise ValueError if its samples match neither 1 nor the table's."""
        given = {name: getattr(self, name) for name in _OF_SAMPLING}
        sampling = replace(
            table, logprobs=False, at_first=None, **{name: value for name, value in given.items() if value is not None}
        )
        if sampling.samples not in (1, table.samples) and self.parse_as != "existence":
            raise ValueError(
                f"step {self.name!r} has {sampling.samples} samples, and what follows has {table.samples}: give it 1, "
                "or as many"
            )
        return sampling


def check_chain(steps: Sequence[Step], slots: Sequence[str], last: str) -> None:
    """Raise ValueError for a chain with a loop, with an answer that no template reads, or with too many questions.

    slots: slots of every template. last: template of the query itself.
    """
    named = [step.name for step in steps]
    refuse(
        (len(steps) > MOST_STEPS, f"a chain of {len(steps)} steps: give {MOST_STEPS} at most"),
        (
            [step.parse_as for step in steps].count("existence") > 1,
            "a chain has one step of existence: give another generator the others",
        ),
    )
    for place, step in enumerate(steps):
        if step.name in slots or step.name in named[:place]:
            raise ValueError(f"step {step.name!r} is called as another value is: give it a name of its own")
        before = () if step.parse_as == "existence" else steps[:place]  # asked once for all draws
        filled = [one.name for one in before if one.parse_as not in VERDICTS]
        for slot in sorted(reads(step.ask).intersection(named[place:])):
            raise ValueError(f"the chain loops: step {step.name!r} reads {{{{ {slot} }}}}, which is not before it")
        for template in (step.ask, step.task):
            check_template(f"step {step.name!r}", template, (*slots, *filled))
    for place, step in enumerate(steps):
        read = reads(last).union(*(reads(one.ask) for one in steps[place + 1 :]))
        if step.parse_as not in VERDICTS and step.name not in read:
            raise ValueError(
                f"nothing reads what step {step.name!r} fills: write {{{{ {step.name} }}}} in a later step or in ask"
            )
    if (questions := math.prod(step.branches for step in steps)) > MOST_ITEMS:
        raise ValueError(f"the chain makes up to {questions} questions of one: bound its steps to {MOST_ITEMS} in all")


MOST_ROUNDS = 50
"""Maximum number of rounds in which a question is asked again."""

FOUND = "found"
"""Slot of the names that earlier rounds found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expand:
    """Further rounds of a question whose answer is a long list, which ask who else there is.

    rounds: maximum number of further rounds of a draw. A draw that has found nothing is not asked again.
    ask: template over the names of the style's `ask`, of which `asked` is the query's own question, and `found`, the
    names so far.
    shown: maximum number of names in `found`; the latest are shown.
    """

    rounds: int = 6
    ask: str = "Already named: {{ found }}. Name only others; say {{ null }} if there are none.\n\n{{ asked }}"
    shown: int = 120

    def __post_init__(self) -> None:
        """Raise ValueError for a number without effect, or too high, and for a template without {found}."""
        refuse(
            (not 1 <= self.rounds <= MOST_ROUNDS, f"rounds is {self.rounds}: give 1 to {MOST_ROUNDS}"),
            (self.shown < 1, "shown is at least 1"),
            (FOUND not in reads(self.ask), f"ask is {self.ask!r}: show the names so far with {{{{ found }}}}"),
        )

    def least(self, turn: int) -> int:  # noqa: ARG002 -- subclasses use it
        """Return the fewest new objects of an answer after which it is asked again. turn: number of rounds so far."""
        return 1


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
    "follow_up": ("asked", "context"),
    "block": (),
    "answer": ("answer", "objects", "recalled", "reasoning"),
}
"""Templates of a style -> the names that each may read beside `VARIABLES`; `ask` also has the names of steps."""


class Turn:
    """What is asked after the reply to a draw. Systems have turns of their own.

    name: of its planned requests. again: how often it repeats the question at most.
    """

    name = ""
    again = 0

    def prompt(self, talk: Any, query: Query, answer: str) -> Prompt | None:  # noqa: ARG002 -- subclasses use them
        """Return the prompt after an answer, for an estimate; None if the question itself is repeated."""
        return None

    def request(self, talk: Any, query: Query, prompt: Prompt, draw: int, reply: Reply) -> Request | None:
        """Return the request after a reply; None if nothing is to be asked. talk: the `Conversation`."""
        raise NotImplementedError

    def counts(self, talk: Any, query: Query, reply: Reply | None) -> bool:  # noqa: ARG002
        """Return whether the reply to the request replaces the earlier one."""
        return True


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
    objects: names, or QIDs.
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
    follow_up: template of a second user turn after the first answer, over the names of `ask` and `context`, which is
    then shown only here. The second answer counts. Without context, the first answer stands.
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
    objects: Literal["names", "ids"] = "names"
    task: str = ""
    block: str = ""
    answer: str = ""
    ask: str = ""
    steps: tuple[Step, ...] = ()
    follow_up: str = ""
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
        "speaker": OF_SYSTEM,
        "wording": "write {{ relation }} or {{ relation_words }} for {{ phrase }}",
    }
    """Settings of earlier releases -> what to write in place of each."""

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
        """Return what is asked after an answer, in order, besides the follow-up."""
        return ()

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
        return form.write(objects) if objects else self.null
