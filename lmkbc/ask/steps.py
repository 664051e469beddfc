"""Chains: what a model is asked before the query itself, step by step, so that an answer feeds the next question.

A step fills a slot of later steps and of the style's ask: with an account that is then read, an enumeration from which
is picked, the years that an award spans. Steps are checked against each other when a recipe is read.
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
"""Kinds of steps whose answer is yes or no, and fills no slot."""

MOST_STEPS = 8
"""Steps of a chain."""

MOST_ITEMS = 256
"""Questions that all steps of a chain together may make of one draw."""

LONGEST_FED = 20_000
"""Characters of an answer that may be fed on."""

YEARS = 1000, 2100
"""First and last number that a step reads as a year."""


_OF_SAMPLING = ("samples", "temperature", "first_temperature", "max_tokens", "stop")
"""Settings of a step that stand in place of its table's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Step of a chain, as a recipe's plain data.

    name: the slot that it fills. task: what a chat's system turn says. ask: a template over the slots of a style's ask
    and the names of earlier steps; or items: what the slot is in turn, where nothing need be asked. parse_as: what is
    fed on of an answer: its "text", the names of its "list", its "numbers", or the years of its "span" in slots of
    `every` years. A "gate" feeds nothing: where it says no, the draw names nothing, and no more is asked. Nor does
    "existence": the share of its draws that say no is a NIL probability, which stands beside the candidates.
    each: whether what follows is asked once for each item, in place of once with all of them. max: items that count,
    the first ones. longest: characters that count. until: the year that a span without an end goes on to.
    samples: 1, whose answer all draws go on from, or as many as the table draws, each of which goes on from its own; an
    existence step has any number. temperature, first_temperature, max_tokens, stop: of these answers. Where one is left
    out, it is the table's. widen: whether the slots of a span become wider where it has more than max; else the last
    ones count.
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
        """Raise ValueError for a value that makes no sense."""
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
        """Return how many questions it makes of one, at most."""
        return len(self.items) or (self.max if self.each else 1)

    def sampling(self, table: Sampling) -> Sampling:
        """Return how its answers are drawn. ValueError where they cannot be told apart by the table's draws."""
        own = {name: getattr(self, name) for name in _OF_SAMPLING}
        sampling = replace(table, logprobs=False, **{name: value for name, value in own.items() if value is not None})
        if sampling.samples not in (1, table.samples) and self.parse_as != "existence":
            raise ValueError(
                f"step {self.name!r} has {sampling.samples} samples, and what follows has {table.samples}: give it 1, "
                "or as many"
            )
        return sampling


def check_chain(steps: Sequence[Step], slots: Sequence[str], last: str) -> None:
    """Raise ValueError for a chain that loops, reads what no step fills, or grows beyond bounds.

    slots: that every template has. last: the template of the query itself.
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
        before = () if step.parse_as == "existence" else steps[:place]  # it is asked once, whatever draws go on with
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
