"""Tables that fit a terminal, and progress bars; without a terminal, both are plain lines.

Rich is loaded here, and by no command that is piped and shows no progress.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import repeat
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from lmkbc.errors import LmkbcError
from lmkbc.progress import PERIOD, CountedStep, ExpectedStep, Lines, Overall, Report, lasting

if TYPE_CHECKING:
    from lmkbc.edition import Edition

_STEERING = re.compile(r"[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters that JSON may hold as they are, and marks that turn the direction of writing."""


def plain(text: str) -> str:
    """Text from a model, a file or a command line, safe for a terminal: what steers one is replaced."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def note(sentence: str) -> None:
    """Write a line for people to stderr."""
    sys.stderr.write(plain(sentence) + "\n")


@contextmanager
def error_status() -> Iterator[None]:
    """Leave the process with an error's sentence on stderr and its exit status, in place of a traceback."""
    try:
        yield
    except LmkbcError as error:
        note(f"error: {error}")
        sys.exit(error.exit_code)


def note_published(edition: Edition, split: str, profile: str = "") -> None:
    """Write the best F1 that was published on a split, by each of the edition's scorers; first by the one given."""
    for scorer in dict.fromkeys((profile, "", *edition.profiles)):
        by = f" by {scorer or 'the official scorer'}" if edition.profiles else ""
        for best in edition.leaderboard(split, scorer)[:1]:
            note(f"best published on {split}{by}: {best.system}, F1 {best.f1:.3f}")


class _Notes(logging.Handler):
    """Handler that prints the engine's log as lines for people."""

    def emit(self, record: logging.LogRecord) -> None:
        note(record.getMessage())


def show_logs() -> None:
    """Show what the engine has to say: how many draws a file holds of each state, what a generator does without."""
    logger = logging.getLogger("lmkbc")
    logger.handlers = [_Notes()]
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # where it keeps its own cache is no concern of the user's


def show_json(value: Any) -> None:
    """Write a result for machines to stdout."""
    sys.stdout.write(tame(json.dumps(value, ensure_ascii=False, indent=2)) + "\n")


def show_json_rows(value: dict[str, Any], name: str, rows: Iterable[dict[str, Any]]) -> None:
    """Write the same with a list as its last member, `name`, which is never in memory as a whole."""
    sys.stdout.write(tame(json.dumps(value, ensure_ascii=False, indent=2)).removesuffix("\n}") + f',\n  "{name}": [')
    before, after = "\n", "]"
    for row in rows:
        written = json.dumps(row, ensure_ascii=False, indent=2).replace("\n", "\n    ")
        sys.stdout.write(f"{before}    {tame(written)}")
        before, after = ",\n", "\n  ]"
    sys.stdout.write(f"{after}\n}}\n")


def tame(written: str) -> str:
    """JSON or TOML of the same meaning in which nothing steers a terminal: what does is written as an escape."""
    return _STEERING.sub(lambda char: f"\\u{ord(char[0]):04x}", written)


def printable(text: str) -> str:
    """Text that is safe for a terminal, with what rich would read as markup escaped."""
    return escape(plain(text))


WIDEST = 1 << 20
"""Columns of a table that is piped, at most."""


class _Output(Console):
    """Standard output, whose reader may go away: `lmkbc.cli` knows how that ends."""

    def on_broken_pipe(self) -> None:
        """Raise what a plain write raises, where rich would end the program as a failure."""
        raise BrokenPipeError


def show_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, title: str | None = None) -> None:
    """Write a table to standard output: the first column to the left, numbers to the right; never cut when piped."""
    table = Table(box=None, pad_edge=False)
    for name, values in zip(columns, zip(*rows, strict=True) if rows else repeat(()), strict=False):
        numeric = bool(table.columns) and all(isinstance(value, int | float | None) for value in values)
        table.add_column(Text(name), justify="right" if numeric else "left", overflow="fold", header_style="bold")
    for row in rows:
        table.add_row(*map(_cell, row))
    is_shown = sys.stdout.isatty()
    output = _Output(highlight=False, width=None if is_shown else WIDEST, force_terminal=None if is_shown else False)
    with nullcontext() if is_shown else output.capture() as written:
        if title is not None:
            output.print(Text(title.ljust(output.measure(table).maximum), style="table.title"), soft_wrap=True)
        output.print(table)
    if written is not None:
        output.file.write("".join(f"{line.rstrip()}\n" for line in written.get().splitlines()))


def _cell(value: Any) -> Text:
    return Text(f"{value:.3f}" if isinstance(value, float) else plain("" if value is None else str(value)))


class _Rate(ProgressColumn):
    """Column of the number of items per second."""

    def render(self, task: Task) -> Text:
        """Empty while nothing is known."""
        speed = task.finished_speed or task.speed
        return Text(f"{speed:.1f}/s" if speed else "", style="progress.data.speed")


class _Left(TimeRemainingColumn):
    """Column of the time left: of the whole run where it is known, or from the step's rate."""

    def render(self, task: Task) -> Text:
        """Return the time, as short as it can be."""
        whole: Overall | None = task.fields.get("whole")
        return Text(lasting(whole.left()), style="progress.remaining") if whole else super().render(task)


def errors() -> Console:
    """Return the console of standard error, where progress is shown."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


@contextmanager
def progress() -> Iterator[Report]:
    """Show a bar on a terminal, with count, rate and time left; elsewhere a plain line every ten seconds.

    The bar is of the whole run where its steps were announced; else each step has one.
    """
    console = errors()
    if not console.is_terminal:
        with Lines(note) as lines:
            yield lines.report
        return
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[unit]}"),
        _Rate(),
        TimeElapsedColumn(),
        TextColumn("left"),
        _Left(),
        console=console,
        transient=True,
        speed_estimate_period=2 * PERIOD,
    )
    tasks: dict[str, TaskID] = {}
    before: dict[str, int] = {}
    whole = Overall()

    def report(step: str, done: int, total: int | None) -> None:
        whole.report(step, done, total)
        if isinstance(step, ExpectedStep):
            return
        key, label, unit = CountedStep.of(step)
        if whole.known:
            count = f"{done}/{total} {unit}".strip()
            key, label, unit, done, total = "", f"{label}: {count}", "%", round(100 * whole.share()), 100
        if key not in tasks:
            for other in tasks.values() if whole.known else ():
                bar.update(other, visible=False)
            tasks[key] = bar.add_task(
                printable(label), total=total, unit=printable(unit), whole=whole if whole.known else None
            )
        elif done < before[key] and not whole.known:  # it begins again, and so does its clock
            bar.reset(tasks[key])
        before[key] = done
        bar.update(tasks[key], description=printable(label), completed=done, total=total)

    with bar:
        yield report
