"""Progress of a long run: one callback, which a command shows as bars or as lines."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TypeVar

Item = TypeVar("Item")
Report = Callable[[str, int, int | None], None]
"""Callback for progress, called with step, done and total; first with 0 done, if the total is known before the work.

A step's name may end with the unit in brackets, as in "link (queries)". The unit may change from call to call. An
`ExpectedStep` announces a step that comes later.
"""


class ExpectedStep(str):
    """Name of a step that is announced before it begins, so that steps can be shown as "step 3 of 6"."""

    __slots__ = ()


def silent(step: str, done: int, total: int | None) -> None:
    """Report nothing."""


def tracked(items: Collection[Item], step: str, report: Report) -> Iterator[Item]:
    """Yield items, and report the number of items done before each item and after the last."""
    for done, item in enumerate(items):
        report(step, done, len(items))
        yield item
    report(step, len(items), len(items))
