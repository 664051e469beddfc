"""Progress of a long run: a single callback, which writes to a terminal, as plain lines or nowhere."""

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
"""Called with (step, done, total) as a run goes on: first with 0 done, where the total is known before the work.

An `ExpectedStep` announces a step that comes later.

What is counted may stand in brackets at the end of a step's name; what follows ", loss" in it may change.
"""
PERIOD = 10.0
"""Seconds from one plain line to the next."""
EXPECTED = 0.1
"""Share of a step's parts that the pace expected of it counts as, beside the pace that was measured."""
USUAL = 1.0
"""Seconds at the usual pace that a run is taken to have behind it, so that its first moments decide nothing."""
_NAMED = re.compile(r"(?P<key>(?P<name>.*?)(?:, loss.*?)?)(?: \((?P<unit>[^()]*)\))?", re.DOTALL)


def silent(step: str, done: int, total: int | None) -> None:
    """Report nothing."""


def tracked(items: Collection[Item], step: str, report: Report) -> Iterator[Item]:
    """Yield items, and tell before each of them, and after the last, how many are done."""
    for done, item in enumerate(items):
        report(step, done, len(items))
        yield item
    report(step, len(items), len(items))


class CountedStep(NamedTuple):
    """A step's parts: what it is known by, what people read, and what is counted."""

    key: str
    label: str
    unit: str

    @classmethod
    def of(cls, step: str) -> CountedStep:
        """Take a step's name apart."""
        parts = _NAMED.fullmatch(step)
        return cls(parts["name"], parts["key"], parts["unit"] or "") if parts else cls(step, step, "")


class ExpectedStep(str):
    """The name of a step that is announced before its run comes to it, as (step, 0, total).

    seconds: what one of what is counted takes on a usual machine, about. The run measures how much slower or faster it
    is, so what matters is how the steps compare. last: whether it comes after those that are announced later, too.
    """

    seconds: float
    last: bool

    def __new__(cls, name: str, seconds: float, *, last: bool = False) -> ExpectedStep:
        """Make the name of an announced step."""
        step = super().__new__(cls, name)
        step.seconds, step.last = seconds, last
        return step


class WholeStep(str):
    """The name of the step that counts all that a run does, while its other steps begin again with each block."""

    __slots__ = ()


@dataclass(slots=True)
class _Part:
    """An announced step: how much of it there is, and how long what was done of it took.

    before: what was done when it began again, as for each of several fits. latest: what was done since.
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
        """Return how much of it was done."""
        return min(self.before + self.latest, self.total)

    def take(self, done: int, seconds: float) -> None:
        """Take in what is done, and how long that took."""
        self.before += self.latest if done < self.latest else 0
        self.latest, self.begun = done, True
        self.spent += seconds


class Overall:
    """Progress of a whole run and its time left, where its steps were announced.

    Announcing a step a second time says that the run goes on block by block; how many is not known, and no whole is.
    Where a `WholeStep` counts, no step's announcement does, since it is of a block.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._parts = clock, dict[str, _Part]()
        self._began: float | None = None
        self._latest = 0.0
        self._counted: tuple[float, int, int] | None = None  # when it began, done, total

    @property
    def known(self) -> bool:
        """Return whether the steps that take the time were announced, and not only what ends a run."""
        if self._counted:
            return self._counted[1] > 0
        return any(not part.last for part in self._parts.values())

    def report(self, step: str, done: int, total: int | None) -> None:
        """Take in where a run is. The time since the last report counts for the step that is reported now."""
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
                if not (one.begun or one.last):  # it was stored, and takes no time
                    one.total = 0
        self._latest = now

    def left(self) -> float:
        """Return the seconds that the run will still take, from what its steps took so far.

        A step's own pace is mixed with the one expected of it, which counts as a tenth of the step: its first part
        loads a model. The next steps are expected to be slower than usual by the square root of what the steps before
        were: another kind of step uses the processor in another way.
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
        """Return how much of the run's time is over, from 0 to 1."""
        if self._counted:
            return self._counted[1] / self._counted[2]
        past = self._clock() - (self._clock() if self._began is None else self._began)
        return past / (past + left) if past + (left := self.left()) else 0.0


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
        self._at: tuple[CountedStep, int, int | None] | None = None
        self._from: dict[str, tuple[float, int]] = {}
        self._done: dict[str, int] = {}
        self._whole = Overall(clock)
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)

    def report(self, step: str, done: int, total: int | None) -> None:
        """Note where the run is; a step that is new, or begins again, is timed anew.

        One that takes turns with others, block by block, goes on: their time is part of how long it takes.
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
        """Return where the run is, its rate and the time left: `tune: 12/105 relations x folds, 3.1/s, 30 s left`."""
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
    """Return a duration in the largest unit that fits: `30 s`, `5 min`, `3.2 h`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
