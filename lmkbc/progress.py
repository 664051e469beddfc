"""Progress of a long run: one callback, which writes to a terminal, as plain lines, or nowhere."""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple, TypeVar

Item = TypeVar("Item")
Report = Callable[[str, int, int | None], None]
"""Callback for progress, called with step, done and total; first with 0 done, if the total is known before the work.

A step's name may end with the unit in brackets, as in "link (queries)". The text from ", loss" on may change from call
to call. An `ExpectedStep` announces a step that comes later.
"""
PERIOD = 10.0
"""Seconds between two plain lines."""
EXPECTED = 0.1
"""Weight of a step's expected pace beside its measured pace, as a share of the step's parts."""
USUAL = 1.0
"""Seconds at the usual pace that are added to the measured time, so that the first moments have little weight."""
_NAMED = re.compile(r"(?P<key>(?P<name>.*?)(?:, loss.*?)?)(?: \((?P<unit>[^()]*)\))?", re.DOTALL)


def silent(step: str, done: int, total: int | None) -> None:
    """Report nothing."""


def tracked(items: Collection[Item], step: str, report: Report) -> Iterator[Item]:
    """Yield items, and report the number of items done before each item and after the last."""
    for done, item in enumerate(items):
        report(step, done, len(items))
        yield item
    report(step, len(items), len(items))


class CountedStep(NamedTuple):
    """Parts of a step's name. key: identifies the step. label: the text to show. unit: what is counted."""

    key: str
    label: str
    unit: str

    @classmethod
    def of(cls, step: str) -> CountedStep:
        """Return the parts of a step's name."""
        parts = _NAMED.fullmatch(step)
        return cls(parts["name"], parts["key"], parts["unit"] or "") if parts else cls(step, step, "")


class ExpectedStep(str):
    """Name of a step that is announced in advance, as (step, 0, total).

    seconds: approximate time per counted item on a usual machine. The run measures how much slower or faster its
    machine is, so only the ratio between steps matters. last: whether the step comes after steps that are announced
    later.
    """

    seconds: float
    last: bool

    def __new__(cls, name: str, seconds: float, *, last: bool = False) -> ExpectedStep:
        """Return the name of an announced step."""
        step = super().__new__(cls, name)
        step.seconds, step.last = seconds, last
        return step


class WholeStep(str):
    """Name of the step that counts the whole run, while its other steps start again with each block."""

    __slots__ = ()


@dataclass(slots=True)
class _Part:
    """Announced step: its total, and the time that its finished items took.

    before: items done in earlier passes, if the step starts again, as for several fits. latest: items done in this
    pass.
    """

    total: int
    seconds: float
    last: bool = False
    before: int = 0
    latest: int = 0
    spent: float = 0.0
    begun: bool = False

    @property
    def done(self) -> int:
        """Return the number of items done."""
        return min(self.before + self.latest, self.total)

    def take(self, done: int, seconds: float) -> None:
        """Record the number of items done, and the seconds that they took."""
        self.before += self.latest if done < self.latest else 0
        self.latest, self.begun = done, True
        self.spent += seconds


class Overall:
    """Progress and remaining time of a whole run, from the steps that were announced.

    A step that is announced again means that the run works in blocks of unknown number; then nothing is known about the
    whole. While a `WholeStep` counts, announcements are ignored, since they are about one block.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._parts = clock, dict[str, _Part]()
        self._began: float | None = None
        self._latest = 0.0
        self._counted: tuple[float, int, int] | None = None  # start time, done, total

    @property
    def known(self) -> bool:
        """Return whether the announced steps include more than those at the end of the run."""
        if self._counted:
            return self._counted[1] > 0
        return any(not part.last for part in self._parts.values())

    def report(self, step: str, done: int, total: int | None) -> None:
        """Record the position of a run. The time since the last report counts for the step that is reported now."""
        key, now = CountedStep.of(step).key, self._clock()
        if self._began is None:
            self._began = self._latest = now
        part = self._parts.get(key)
        if isinstance(step, WholeStep):
            began = self._counted[0] if self._counted and done else now
            self._counted, self._parts = None if done == total else (began, done, total or 0), {}
        elif isinstance(step, ExpectedStep) and self._counted:
            pass
        elif isinstance(step, ExpectedStep):
            if part and part.begun:
                self._parts = {}
            else:
                self._parts[key] = _Part(total or 0, step.seconds, step.last)
        elif part:
            part.take(done, now - self._latest)
            earlier = list(self._parts)[: list(self._parts).index(key)]
            for one in (self._parts[name] for name in earlier):
                if not (one.begun or one.last):  # it was skipped because its results were stored
                    one.total = 0
        self._latest = now

    def left(self) -> float:
        """Return the seconds that the run will still take, estimated from the steps so far.

        A step's measured pace is mixed with its expected pace, which has the weight of a tenth of the step. The reason
        is that the first item often includes the loading of a model. Later steps are expected to be slower than usual
        by the square root of the slowdown so far. The full slowdown would be too much, since other steps use the
        processor differently.
        """
        if self._counted:
            began, done, total = self._counted
            return (self._clock() - began) * (total - done) / max(done, 1)
        usual = sum(part.done * part.seconds for part in self._parts.values())
        spent = sum(part.spent for part in self._parts.values() if part.done)
        slower = math.sqrt((spent + USUAL) / (usual + USUAL))
        left = 0.0
        for part in self._parts.values():
            expected = part.total * EXPECTED
            each = (part.spent + expected * part.seconds * slower) / (part.done + expected) if part.total else 0.0
            left += (part.total - part.done) * each
        return max(left - (self._clock() - self._latest), 0.0)

    def share(self) -> float:
        """Return the share of the run's time that is over, from 0 to 1."""
        if self._counted:
            return self._counted[1] / self._counted[2]
        past = self._clock() - (self._clock() if self._began is None else self._began)
        return past / (past + left) if past + (left := self.left()) else 0.0


class Lines:
    """Progress without a terminal: a plain line about the current step every ten seconds.

    A context manager; its `report` is the callback.

    write: called with each line.
    clock: returns seconds.
    wait: waits for the given seconds and returns whether the run has ended; tests replace it.
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
        self._at: tuple[CountedStep, int, int | None] | None = None
        self._from: dict[str, tuple[float, int]] = {}
        self._done: dict[str, int] = {}
        self._whole = Overall(clock)
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)

    def report(self, step: str, done: int, total: int | None) -> None:
        """Record the position of the run. A step that is new, or starts again, is timed from now.

        A step that alternates with others, block by block, is not timed again: the others' time counts for it too.
        """
        named = CountedStep.of(step)
        self._whole.report(step, done, total)
        if isinstance(step, ExpectedStep):
            return
        if named.key not in self._from or done < self._done[named.key]:
            self._from[named.key] = self._clock(), done
        self._done[named.key] = done
        self._at = named, done, total

    def line(self) -> str:
        """Return the run's position, its rate and the time left: `tune: 12/105 relations x folds, 3.1/s, 30 s left`."""
        if self._at is None:
            return ""
        (key, label, unit), done, total = self._at
        began, first = self._from[key]
        seconds = self._clock() - began
        rate = (done - first) / seconds if seconds > 0 else 0.0
        count = f"{done}" if total is None else f"{done}/{total}"
        if self._whole.known:
            return (
                f"{self._whole.share():.0%}, {lasting(self._whole.left())} left ({label}: {count} {unit}".rstrip() + ")"
            )
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
    """Return a duration in its largest fitting unit: `30 s`, `5 min`, `3.2 h`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
