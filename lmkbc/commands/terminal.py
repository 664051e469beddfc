"""Tables that fit a terminal, and progress bars; without a terminal, both are plain lines.

Rich is imported by this module. A command whose output is piped, and that shows no progress, does not load it.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import timedelta
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
)
from rich.table import Column, Table
from rich.text import Text

from lmkbc.errors import LmkbcError
from lmkbc.progress import ExpectedStep, Report

if TYPE_CHECKING:
    from lmkbc.edition import Edition

_STEERING = re.compile(r"[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters that JSON may hold unescaped, and marks that change the direction of writing."""


def plain(text: str) -> str:
    """Return text from a model, a file or a command line, with control characters replaced, so it is safe to print."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def note(sentence: str) -> None:
    """Write a message to stderr."""
    sys.stderr.write(plain(sentence) + "\n")


@contextmanager
def error_status() -> Iterator[None]:
    """Turn an LmkbcError into its message on stderr and its exit status, without a traceback."""
    try:
        yield
    except LmkbcError as error:
        note(f"error: {error}")
        sys.exit(error.exit_code)


def confirmed(sentence: str, question: str) -> bool:
    """Return whether the user says yes to a question about a sentence; False without a terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    note(sentence)
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def note_published(edition: Edition, split: str, profile: str = "", system: str = "") -> None:
    """Write the published F1 of a system and the best one, by each of the edition's scorers; `profile` comes first."""
    for scorer in dict.fromkeys((profile, "", *edition.profiles)):
        by = f" by {scorer or 'the official scorer'}" if edition.profiles else ""
        board = edition.leaderboard(split, scorer)
        for own in [one for one in board if system and one.recipe == system]:
            note(f"published for {system} on {split}{by}: {own.system}, F1 {own.f1:.3f}")
        for best in board[:1]:
            note(f"best published on {split}{by}: {best.system}, F1 {best.f1:.3f}")


class _Notes(logging.Handler):
    """Handler that prints the engine's log as plain messages, equal ones once."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = Counter[str]()

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        self.seen[message] += 1
        if self.seen[message] == 1:
            note(message)


@contextmanager
def shown_logs() -> Iterator[None]:
    """Show the engine's log on stderr, such as counts of draws by state and remarks of generators.

    At the end, say how often a message came that came more than once.
    """
    logger, notes = logging.getLogger("lmkbc"), _Notes()
    logger.handlers = [notes]
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it would warn about its own cache
    try:
        yield
    finally:
        for message, count in notes.seen.items():
            if count > 1:
                note(f"{count} times: {message}")


def show_json(value: Any) -> None:
    """Write a result as JSON to stdout."""
    sys.stdout.write(tame(json.dumps(value, ensure_ascii=False, indent=2)) + "\n")


def tame(written: str) -> str:
    """Return JSON or TOML of the same meaning, with control characters written as escapes."""
    return _STEERING.sub(lambda char: f"\\u{ord(char[0]):04x}", written)


def printable(text: str) -> str:
    """Return text that is safe for a terminal, with rich's markup escaped."""
    return escape(plain(text))


PERIOD = 10.0
"""Seconds between two plain lines about progress."""
WIDEST = 1 << 20
"""Most columns of a piped table."""


class _Output(Console):
    """Standard output, whose reader may close the pipe: `lmkbc.cli` handles that."""

    def on_broken_pipe(self) -> None:
        """Raise BrokenPipeError, as a plain write does. Rich would end the program as a failure."""
        raise BrokenPipeError


def show_table(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], *, title: str | None = None, floats: str = ".3f"
) -> None:
    """Write a table to standard output: first column left, numbers right. It is never cut if piped.

    floats: format of numbers that are not whole.
    """
    table = Table(box=None, pad_edge=False)
    for name, values in zip(columns, zip(*rows, strict=True) if rows else repeat(()), strict=False):
        numeric = bool(table.columns) and all(isinstance(value, int | float | None) for value in values)
        table.add_column(Text(name), justify="right" if numeric else "left", overflow="fold", header_style="bold")
    for row in rows:
        table.add_row(*(_cell(value, floats) for value in row))
    is_shown = sys.stdout.isatty()
    output = _Output(highlight=False, width=None if is_shown else WIDEST, force_terminal=None if is_shown else False)
    with nullcontext() if is_shown else output.capture() as written:
        if title is not None:
            output.print(Text(title.ljust(output.measure(table).maximum), style="table.title"), soft_wrap=True)
        output.print(table)
    if written is not None:
        output.file.write("".join(f"{line.rstrip()}\n" for line in written.get().splitlines()))


def _cell(value: Any, floats: str = ".3f") -> Text:
    return Text(format(value, floats) if isinstance(value, float) else plain("-" if value is None else str(value)))


def show_as(form: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Write a table to standard output as markdown, latex (with booktabs) or csv (with all digits)."""
    if form == "csv":
        import polars as pl

        from lmkbc.files.tables import comma_separated

        frame = pl.DataFrame(rows, schema=list(columns), orient="row", infer_schema_length=None)
        sys.stdout.write(comma_separated(frame))
        return
    latex = form == "latex"
    special, between = (r"[&%$#_{}]", " & ") if latex else (r"[|]", " | ")
    head, *body = (
        between.join(re.sub(special, r"\\\g<0>", _cell(value).plain) for value in row) for row in (columns, *rows)
    )
    if latex:
        aligned = "l" + "r" * (len(columns) - 1)
        above = [f"\\begin{{tabular}}{{{aligned}}}", "\\toprule", f"{head} \\\\", "\\midrule"]
        lines = [*above, *(f"{line} \\\\" for line in body), "\\bottomrule", "\\end{tabular}"]
    else:
        lines = [f"| {line} |" for line in (head, between.join(["---", *["---:"] * (len(columns) - 1)]), *body)]
    sys.stdout.write("\n".join(lines) + "\n")


def _pace(task: Task) -> tuple[str, str]:
    """Return the rate of a step and the time that is left: "3.1/s" or "12.0 s each", and "0:00:31 left"; "" if unknown.

    The rate is the mean of finished results since the first second, whose results may be kept ones. While a slow server
    lets wait, the time that is left gets shorter. It is at least the time since the latest result, so it grows where
    nothing comes.
    """
    elapsed = task.finished_time or task.elapsed or 1
    at = task.fields.get("at") or elapsed
    speed = (task.completed - task.fields.get("early", 0)) / at
    if speed <= 0:
        return "", ""
    rest = (task.total - task.completed) / speed if task.total else 0
    left = timedelta(seconds=round(rest and max(rest - (elapsed - at), elapsed - at)))
    return f"{speed:.1f}/s" if speed >= 1 else f"{1 / speed:.1f} s each", f"{left} left" * bool(left)


class _Written(ProgressColumn):
    """Column of a text, which is cut where the line has no room for it. of: the text of a step."""

    def __init__(self, of: Callable[[Task], str], column: Column | None = None, style: str = "") -> None:
        super().__init__(column)
        self._of, self._style = of, style

    def render(self, task: Task) -> Text:
        """Return the text."""
        return Text(self._of(task), self._style, no_wrap=True, overflow="ellipsis")


class _Lines(Progress):
    """Bars of one line each. spare: columns that are left out where there is no room, the first of them first."""

    def __init__(self, screen: Console, columns: Sequence[ProgressColumn], spare: Sequence[ProgressColumn]) -> None:
        self._screen, self._columns, self._spare = screen, columns, spare
        super().__init__(*columns, console=screen, transient=True, disable=not screen.is_terminal)

    def make_tasks_table(self, tasks: Iterable[Task]) -> Table:
        """Return the table of the bars."""
        shown, every = [task for task in tasks if task.visible], self._screen.options.update(max_width=WIDEST)
        for left_out in range(len(self._spare) + 1):
            columns = [one for one in self._columns if one not in self._spare[:left_out]]
            table = Table.grid(*(one.get_table_column().copy() for one in columns), padding=(0, 1))
            for task in shown:
                table.add_row(*(one(task) for one in columns))
            if self._screen.measure(table, options=every).maximum <= self._screen.width:
                break
        return table


def errors() -> Console:
    """Return the console of standard error, which shows progress."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


@contextmanager
def progress() -> Iterator[Report]:
    """Yield a callback for progress. It shows a bar per step on a terminal, elsewhere a plain line every ten seconds.

    A bar has count and rate. If the run announced its steps, it has the step's number too, as in "step 3 of 6". Name,
    count and time left stand in narrow terminals, too.
    """
    console, whole = errors(), Column(no_wrap=True)
    number, drawn = TextColumn("{task.fields[number]}"), BarColumn(table_column=whole)
    rate = _Written(lambda task: _pace(task)[0], whole, "progress.data.speed")
    elapsed = TimeElapsedColumn(whole)
    columns = (
        number,
        TextColumn("{task.description}"),
        drawn,
        MofNCompleteColumn(table_column=whole),
        _Written(lambda task: str(task.fields["unit"])),
        rate,
        _Written(lambda task: _pace(task)[1], whole, "progress.remaining"),
        elapsed,
    )
    bar = _Lines(console, columns, spare=(elapsed, number, rate, drawn))
    tasks: dict[str, TaskID] = {}
    announced, latest = set[str](), list[TaskID]()

    def report(step: str, done: int, total: int | None) -> None:
        name, opened, unit = step.removesuffix(")").rpartition(" (")
        name, unit = (name, unit) if opened else (unit, "")
        if isinstance(step, ExpectedStep):
            announced.add(name)
            return
        if name not in tasks:
            tasks[name] = bar.add_task(printable(name), unit="", number="")
        elif done < bar.tasks[tasks[name]].completed:  # the step begins again, so its clock is reset
            bar.reset(tasks[name])
        number = f"step {[*tasks].index(name) + 1} of {len(announced | tasks.keys())}" if announced else ""
        task = bar.tasks[tasks[name]]
        at = task.elapsed if done != task.completed else task.fields.get("at")
        bar.update(tasks[name], completed=done, total=total, unit=plain(unit), number=number, at=at)
        if (task.elapsed or 0) < 1:
            bar.update(tasks[name], early=done)
        latest[:] = [tasks[name]]

    def write() -> None:
        while not ended.wait(PERIOD):
            for task in latest:
                note(_line(bar.tasks[task]))

    ended, writer = threading.Event(), threading.Thread(target=write, name="progress", daemon=True)
    if bar.disable:
        writer.start()
    try:
        with bar:
            yield report
    finally:
        ended.set()


def _line(task: Task) -> str:
    """Return a step's position, rate and time as a line: `tune: 12/105 relations x folds, 3.1/s, 4 s`."""
    count = f"{task.completed:.0f}" if task.total is None else f"{task.completed:.0f}/{task.total:.0f}"
    words = f"{task.description}: {count} {task.fields['unit']}".rstrip()
    return ", ".join(filter(None, [words, *_pace(task), f"{task.elapsed or 0:.0f} s"]))
