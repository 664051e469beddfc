"""Protocol of benchmarks of a model's knowledge. A benchmark is a dataclass with its options.

A field with a description is an option of the command. `run` does the work, also when called from Python.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

from msgspec import Meta

from lmkbc.errors import check_known
from lmkbc.progress import Report, silent
from lmkbc.report.figures import Plot
from lmkbc.run.base import ModelRun
from lmkbc.settings import listed

TableNames = Annotated[str | None, Meta(description="Print only these tables, comma-separated.")]
"""The option `--table` of a benchmark."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table to show. name: its name for `--table`.

    title: its contents, and the table of the paper that it reproduces.

    picture: function that draws the paper's figure of it.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[Any]]
    name: str
    title: str | None = None
    picture: Callable[[], Plot] | None = None


@dataclass(frozen=True, slots=True)
class Findings:
    """Results of a benchmark: values for JSON, tables, and sentences below them."""

    values: Any
    sheets: Sequence[Sheet] = ()
    remarks: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Means(ModelRun):
    """Resources of a benchmark's run: servers of models, a function for notes, and a progress bar."""

    note: Callable[[str], object] = str
    progress: Callable[[], AbstractContextManager[Report]] = lambda: nullcontext(silent)


class Benchmark(Protocol):
    """A benchmark with its options."""

    def run(self, means: Means) -> Findings:
        """Ask a model, or score answers. InputError for wrong options."""


def percent(*shares: float | None) -> list[float | None]:
    """Return shares in percent."""
    return [None if share is None else 100 * share for share in shares]


def wanted_tables(given: str | None, known: Collection[str], default: Collection[str]) -> list[str]:
    """Return the names of the tables to make, in the order of `known`. given: value of the option `--table`.

    InputError for an unknown name. Call it before a model is opened.
    """
    names = listed(given)
    for name in names or ():
        check_known(name, known, f"--table names {name!r}, which is no table of this benchmark")
    return [name for name in known if name in (default if names is None else names)]
