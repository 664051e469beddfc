"""Facts that a format cannot hold. They are left out of an export, and counted by reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from lmkbc.kb.build.knowledge import FactRow

Written = TypeVar("Written")


class LeftOutError(ValueError):
    """An error for a fact that a format cannot hold. Its text is the reason, as in "no readable date"."""


@dataclass(slots=True)
class ExportTally:
    """Counts of an export: facts that were written, and facts that were left out, by reason."""

    facts: int = 0
    left_out: Counter[str] = field(default_factory=Counter)

    def written(self, facts: Iterable[FactRow], write: Callable[[FactRow], Written]) -> Iterator[Written]:
        """Yield what a function makes of each fact. A fact for which it raises LeftOutError is counted and skipped."""
        for fact in facts:
            try:
                made = write(fact)
            except LeftOutError as reason:
                self.left_out[str(reason)] += 1
            else:
                self.facts += 1
                yield made
