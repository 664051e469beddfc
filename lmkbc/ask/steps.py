"""Chains: questions before the query itself, each of which can use the answers of earlier steps.

A step fills a slot for later steps and for the style's `ask`. Examples are an account that is then read, an enumeration
to pick from, and the years of an award. Steps are checked against each other when a recipe is read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from lmkbc.ask.frames import SLOT, check_slots
from lmkbc.errors import refuse
from lmkbc.models.base import Sampling

ParseAs = Literal["text", "list", "numbers", "span", "gate", "existence"]

VERDICTS = ("gate", "existence")
"""Kinds of steps with a yes or no answer, which fill no slot."""

MOST_STEPS = 8
"""Maximum number of steps of a chain."""

MOST_ITEMS = 256
"""Maximum number of questions that a chain may ask for one draw."""

LONGEST_FED = 20_000
"""Maximum number of characters of an answer that may fill a slot."""

YEARS = 1000, 2100
"""First number that a step reads as a year, and first one above."""


_OF_SAMPLING = ("samples", "temperature", "first_temperature", "max_tokens", "stop")
"""Settings of a step that replace those of its table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Step of a chain, as in a recipe.

    name: the slot that it fills.
    task: system turn of a chat.
    ask: template over the slots of a style's `ask` and the names of earlier steps.
    items: values of the slot, instead of a question.
    parse_as: content of the slot: the "text", the names of a "list", the "numbers", or the years of a "span", `every`
    years per slot. After a "no" to a "gate", the draw names nothing and is not asked further. The share of "no" among
    the draws of an "existence" step is a NIL probability. Both fill no slot.
    each: whether later questions are asked once per item; else once with all items.
    max: maximum number of items that count, from the first.
    longest: maximum number of characters that count.
    until: the year at which a span without an end stops.
    samples: 1 (all draws continue from one answer) or the table's number (each draw continues from its own answer); any
    number for an existence step.
    temperature, first_temperature, max_tokens, stop: of these answers; the table's if not given.
    widen: whether a span with more than max slots gets wider slots; else only the last slots count.
    """

    name: str
    task: str = ""
    ask: str = ""
    items: tuple[str, ...] = ()
    parse_as: ParseAs = "text"
    each: bool = False
    max: int = 20
    longest: int = 2000
    every: int = 10
    until: int | None = None
    samples: int | None = None
    temperature: float | None = None
    first_temperature: float | None = None
    max_tokens: int | None = None
    widen: bool = True
    stop: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for a wrong value."""
        name = repr(self.name)
        bounds = (("max", self.max, MOST_ITEMS), ("longest", self.longest, LONGEST_FED), ("every", self.every, 1000))
        refuse(
            (
                not re.fullmatch(r"[a-z]\w*", self.name),
                f"a step's name is {name}: give a word in small letters, since it is a slot",
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

    @property
    def branches(self) -> int:
        """Return the largest number of questions that it makes of one."""
        return len(self.items) or (self.max if self.each else 1)

    def sampling(self, table: Sampling) -> Sampling:
        """Return the sampling of its answers. Raise ValueError if its samples match neither 1 nor the table's."""
        given = {name: getattr(self, name) for name in _OF_SAMPLING}
        sampling = replace(table, logprobs=False, **{name: value for name, value in given.items() if value is not None})
        if sampling.samples not in (1, table.samples) and self.parse_as != "existence":
            raise ValueError(
                f"step {self.name!r} has {sampling.samples} samples, and what follows has {table.samples}: give it 1, "
                "or as many"
            )
        return sampling


def check_chain(steps: Sequence[Step], slots: Sequence[str], last: str) -> None:
    """Raise ValueError for a chain with a loop, with a slot that no step fills, or with too many questions.

    slots: slots of every template. last: template of the query itself.
    """
    names = [step.name for step in steps]
    refuse(
        (len(steps) > MOST_STEPS, f"a chain of {len(steps)} steps: give {MOST_STEPS} at most"),
        (
            [step.parse_as for step in steps].count("existence") > 1,
            "a chain has one step of existence: give another generator the others",
        ),
    )
    for place, step in enumerate(steps):
        if step.name in slots or step.name in names[:place]:
            raise ValueError(f"step {step.name!r} is called as another slot is: give it a name of its own")
        before = () if step.parse_as == "existence" else steps[:place]  # asked once for all draws
        filled = [one.name for one in before if one.parse_as not in VERDICTS]
        for slot in SLOT.findall(step.ask):
            if slot in names[place:]:
                raise ValueError(f"the chain loops: step {step.name!r} reads {{{slot}}}, which is not before it")
        check_slots(f"step {step.name!r}", step.ask, (*slots, *filled))
    for place, step in enumerate(steps):
        templates = (*(one.ask for one in steps[place + 1 :]), last)
        if step.parse_as not in VERDICTS and not any(f"{{{step.name}}}" in template for template in templates):
            raise ValueError(
                f"nothing reads what step {step.name!r} fills: name {{{step.name}}} in a later step or in ask"
            )
    if (questions := math.prod(step.branches for step in steps)) > MOST_ITEMS:
        raise ValueError(f"the chain makes up to {questions} questions of one: bound its steps to {MOST_ITEMS} in all")
