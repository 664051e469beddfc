"""What people see: results on stdout, everything else on stderr; model output is shown as plain text only."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
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

from lmkbc.progress import (
    PERIOD,
    Lines,
    Named,
    Report,
)

if TYPE_CHECKING:
    from lmkbc.edition import Edition

_STEERING = re.compile(r"[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters that JSON may hold as they are, and marks that turn the direction of writing."""

ERR = Console(stderr=True, highlight=False, soft_wrap=True)


def plain(text: str) -> str:
    """Text from a model, a file or a command line, safe for a terminal: what steers one is replaced."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def printable(text: str) -> str:
    """Text that is safe for a terminal, with what `rich` would read as markup escaped."""
    return escape(plain(text))


def show_error(sentence: str) -> None:
    """One sentence on what is wrong, where, and what to do."""
    ERR.print(f"error: {printable(sentence)}")


def note(sentence: str) -> None:
    """A line for people, on stderr."""
    ERR.print(printable(sentence))


def note_published(edition: Edition, split: str) -> None:
    """The best F1 that was published on a split, where one was. "val" and "dev" name the same one."""
    names = {"val", "dev"} if split in ("val", "dev") else {split}
    best = max((one for one in edition.published if one.split in names), key=lambda one: one.f1, default=None)
    if best is not None:
        note(f"best published on {split}: {best.system}, F1 {best.f1:.3f}")


class _Notes(logging.Handler):
    """What the engine logs, as lines for people."""

    def emit(self, record: logging.LogRecord) -> None:
        note(record.getMessage())


def show_logs() -> None:
    """Show what the engine has to say: how many draws a file holds of each state, what a generator does without."""
    logger = logging.getLogger("lmkbc")
    logger.handlers = [_Notes()]
    logger.setLevel(logging.INFO)
    logger.propagate = False


def show_json(value: Any) -> None:
    """A result for machines, on stdout."""
    sys.stdout.write(tame(json.dumps(value, ensure_ascii=False, indent=2)) + "\n")


def show_json_rows(value: dict[str, Any], name: str, rows: Iterable[dict[str, Any]]) -> None:
    """The same with a list as its last member, `name`, which is never in memory as a whole."""
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


class _Output(Console):
    """Standard output, whose reader may go away: `lmkbc.cli` knows how that ends."""

    def on_broken_pipe(self) -> None:
        """Tell of it, where rich would end the program as a failure."""
        raise BrokenPipeError


def show_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, title: str | None = None) -> None:
    """A table on stdout: the first column to the left, numbers to the right; never cut when piped."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for position, column in enumerate(columns):
        numeric = position > 0 and all(isinstance(row[position], int | float | None) for row in rows)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_cell(value) for value in row))
    console = _Output(highlight=False)
    if not console.is_terminal:
        wide = Console(highlight=False, width=10_000)
        console = _Output(highlight=False, width=wide.measure(table).maximum)
    console.print(table)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    return printable("" if value is None else str(value))


class _Rate(ProgressColumn):
    """How many a second."""

    def render(self, task: Task) -> Text:
        """Empty while nothing is known."""
        speed = task.finished_speed or task.speed
        return Text(f"{speed:.1f}/s" if speed else "", style="progress.data.speed")


@contextmanager
def progress() -> Iterator[Report]:
    """A bar per step on a terminal, with count, rate and time left; elsewhere a plain line every ten seconds."""
    if not ERR.is_terminal:
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
        TimeRemainingColumn(),
        console=ERR,
        transient=True,
        speed_estimate_period=2 * PERIOD,
    )
    tasks: dict[str, TaskID] = {}
    before: dict[str, int] = {}

    def report(step: str, done: int, total: int | None) -> None:
        key, label, unit = Named.of(step)
        if key not in tasks:
            tasks[key] = bar.add_task(printable(label), total=total, unit=printable(unit))
        elif done < before[key]:  # it begins again, and so does its clock
            bar.reset(tasks[key])
        before[key] = done
        bar.update(tasks[key], description=printable(label), completed=done, total=total)

    with bar:
        yield report
