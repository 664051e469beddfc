"""Answers to steps: the items that a later step or the question reads, and verdicts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from lmkbc.answer.abstain import is_abstention
from lmkbc.answer.parse import parse
from lmkbc.ask.slots import one_line
from lmkbc.ask.steps import YEARS, Step
from lmkbc.generate.guard import guarded
from lmkbc.models.base import (
    CUT_OFF,
    WITHHELD,
    Reply,
)
from lmkbc.models.endings import list_end
from lmkbc.models.thoughts import answer_of
from lmkbc.relation import Relation, Shape
from lmkbc.types import State

_YEAR = re.compile(r"(?<!\d)\d{4}(?!\d)")
_OPEN_END = re.compile(
    r"\b(?:present|now|today|current|currently|ongoing|still|to date)\b|[-–—]\s*(?:$|[.)\]])", re.IGNORECASE
)
_VERDICT = re.compile(r"\W*(yes|true|no|false)\b", re.IGNORECASE)


def read(step: Step, reply: Reply, relation: Relation, subject: str) -> tuple[str, ...] | None:
    """Return an answer's items for the next steps: () if it names none, None if nothing can be read.

    If the answer was cut off, its last item is left out.
    """
    whole = answer_of(reply.text)
    if not whole or reply.finish in WITHHELD:
        return None
    text = whole[: step.longest]
    if step.parse_as == "text":
        return (one_line(text),)
    if step.parse_as == "span":
        return tuple(_span(step, text)) or None
    cut = (reply.finish in CUT_OFF or text != whole) and list_end(text) is None
    items = guarded(partial(_items, step, text, relation, subject), text, lambda *_: None)
    if not items:
        return items
    return items[: len(items) - cut][: step.max] or None


def verdict(reply: Reply) -> bool | None:
    """Return whether an answer begins with yes; None if it begins with neither yes nor no."""
    found = _VERDICT.match(answer_of(reply.text) or "") if reply.finish not in WITHHELD else None
    return found and found[1].casefold() in ("yes", "true")


def _items(step: Step, text: str, relation: Relation, subject: str) -> tuple[str, ...] | None:
    kind = "number" if step.parse_as == "numbers" else "entity"
    parsed = parse(text, replace(relation, kind=kind, unit=None, shape=Shape()), subject)
    if parsed.state is State.ABSTAINED or is_abstention(text, relation):
        return ()
    return tuple(dict.fromkeys(one_line(item) for item in parsed.objects)) or None


def _span(step: Step, text: str) -> Iterator[str]:
    """Yield the years between the first two that are named, in slots of `every` years or, if too many, wider slots."""
    years = [year for year in map(int, _YEAR.findall(text)) if YEARS[0] <= year < YEARS[1]][:2]
    if not years:
        return
    if len(years) == 1 and step.until is not None and _OPEN_END.search(text):
        years.append(step.until)
    first, last = min(years), max(years)
    first, width = step.span(first, last)
    for slot in range(first // width, last // width + 1):
        start, end = max(slot * width, first), min(slot * width + width - 1, last)
        yield str(start) if start == end else f"{start} to {end}"
