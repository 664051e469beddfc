"""Requests before and after a question: steps, further rounds, and turns, with their checks.

A chain is a list of questions before the query itself, each of which can use the answers of earlier steps. A step's
answer has a name, by which later steps and the style's `ask` read it. Examples are an account that is then read, an
enumeration to pick from, and the years of an award.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

from lmkbc.ask.templates import check_template, reads
from lmkbc.errors import refuse
from lmkbc.models.base import Prompt, Reply, Request, Sampling
from lmkbc.settings import ReadBy
from lmkbc.types import Query

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


_OF_SAMPLING = ("samples", "temperature", "max_tokens", "stop")
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
    temperature, max_tokens, stop: of these answers; the table's if not given.
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
    max_tokens: int | None = None
    stop: tuple[str, ...] | None = None

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
    names: maximum number of names in `found`; the latest are shown.
    """

    rounds: int = 6
    ask: str = "Already named: {{ found }}. Name only others; say {{ null }} if there are none.\n\n{{ asked }}"
    names: int = 120

    REMOVED: ClassVar[Mapping[str, str]] = {"shown": "write it as names"}

    def __post_init__(self) -> None:
        """Raise ValueError for a number without effect, or too high, and for a template without {found}."""
        refuse(
            (not 1 <= self.rounds <= MOST_ROUNDS, f"rounds is {self.rounds}: give 1 to {MOST_ROUNDS}"),
            (self.names < 1, "names is at least 1"),
            (FOUND not in reads(self.ask), f"ask is {self.ask!r}: show the names so far with {{{{ found }}}}"),
        )

    def least(self, turn: int) -> int:  # noqa: ARG002 -- subclasses use it
        """Return the fewest new objects of an answer after which it is asked again. turn: number of rounds so far."""
        return 1


class Turn(ABC):
    """A request after the reply to a draw. Systems have turns of their own.

    name: of its planned requests. again: how often it repeats the question at most.
    """

    name = ""
    again = 0

    def prompt(self, talk: Any, query: Query, asked: Prompt, context: str, answer: str) -> Prompt | None:  # noqa: ARG002
        """Return the prompt after an answer, for an estimate; None if the question itself is repeated.

        asked: the prompt of the question. context: the passages that are found about the query.
        """
        return None

    @abstractmethod
    def request(self, talk: Any, query: Query, prompt: Prompt, draw: int, reply: Reply) -> Request | None:
        """Return the request after a reply; None if nothing is to be asked. talk: the `Conversation`."""

    def counts(self, talk: Any, query: Query, reply: Reply | None) -> bool:  # noqa: ARG002
        """Return whether the reply to the request replaces the earlier one."""
        return True
