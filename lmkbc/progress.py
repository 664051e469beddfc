"""How a long run says where it is: one callback, behind which is a terminal, plain lines or nothing."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple

Report = Callable[[str, int, int | None], None]
"""Called with (step, done, total) as a run goes on: first with 0 done, where the total is known before the work.

What is counted may stand in brackets at the end of a step's name; what follows ", loss" in it may change.
"""
PERIOD = 10.0
"""Seconds from one plain line to the next."""
_NAMED = re.compile(r"(?P<key>(?P<name>.*?)(?:, loss.*?)?)(?: \((?P<unit>[^()]*)\))?", re.DOTALL)


def silent(step: str, done: int, total: int | None) -> None:
    """Report nothing."""


class Named(NamedTuple):
    """A step's parts: what it is known by, what people read, and what is counted."""

    key: str
    label: str
    unit: str

    @classmethod
    def of(cls, step: str) -> Named:
        """Take a step's name apart."""
        parts = _NAMED.fullmatch(step)
        return cls(parts["name"], parts["key"], parts["unit"] or "") if parts else cls(step, step, "")


class Lines:
    """Progress where there is no terminal: one plain line every ten seconds on the step that a run is in.

    A context manager, whose `report` is the callback. write: takes a line. clock: seconds. wait: waits so many seconds,
    and says whether the run has ended; in place of the time of day, for tests.
    """

    def __init__(
        self,
        write: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], bool] | None = None,
    ) -> None:
        self._write, self._clock = write, clock
        self._ended = threading.Event()
        self._wait = wait or self._ended.wait
        self._at: tuple[Named, int, int | None] | None = None
        self._from: dict[str, tuple[float, int]] = {}
        self._done: dict[str, int] = {}
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)

    def report(self, step: str, done: int, total: int | None) -> None:
        """Note where the run is; a step that is new, or begins again, is timed anew.

        One that takes turns with others, block by block, goes on: their time is part of how long it takes.
        """
        named = Named.of(step)
        if named.key not in self._from or done < self._done[named.key]:
            self._from[named.key] = self._clock(), done
        self._done[named.key] = done
        self._at = named, done, total

    def line(self) -> str:
        """Where the run is, how fast, and how long it will take: `tune: 12/105 relations x folds, 3.1/s, 30 s left`."""
        if self._at is None:
            return ""
        (key, label, unit), done, total = self._at
        began, first = self._from[key]
        seconds = self._clock() - began
        rate = (done - first) / seconds if seconds > 0 else 0.0
        count = f"{done}" if total is None else f"{done}/{total}"
        parts = [f"{label}: {count} {unit}".rstrip()]
        if rate and done != total:
            parts.append(f"{rate:.1f}/s" if rate >= 1 else f"{1 / rate:.1f} s each")
        if rate and total is not None and done < total:
            parts.append(f"{lasting((total - done) / rate)} left")
        else:
            parts.append(f"{lasting(seconds)} so far")
        return ", ".join(parts)

    def __enter__(self) -> Lines:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._wait(PERIOD):
            if line := self.line():
                self._write(line)


def lasting(seconds: float) -> str:
    """A duration in the largest unit that fits: `30 s`, `5 min`, `3.2 h`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
