"""Protocol of benchmarks of a model's knowledge. A benchmark is a dataclass of its options, and shows its tables.

A field with a description is an option of the command; `run` does the rest, from Python too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from lmkbc.progress import Report, silent
from lmkbc.run.base import ModelRun


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table to show."""

    heads: Sequence[str]
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Findings:
    """Results of a benchmark: for machines, as tables, and as sentences below these."""

    values: Any
    sheets: Sequence[Sheet] = ()
    remarks: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Means(ModelRun):
    """Means of a benchmark's run: servers of models, a function for notes, and a progress bar."""

    note: Callable[[str], object] = str
    progress: Callable[[], AbstractContextManager[Report]] = lambda: nullcontext(silent)


class Benchmark(Protocol):
    """A benchmark with its options."""

    def run(self, means: Means) -> Findings:
        """Ask a model, or score answers. InputError for options that make no sense."""


def percent(*shares: float | None) -> list[float | None]:
    """Return shares in percent."""
    return [None if share is None else 100 * share for share in shares]
