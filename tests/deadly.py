"""A generator that kills the process over some subjects, which Ray's workers import by this name."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lmkbc.generate.spec import GeneratorSpec
from lmkbc.notes import Notes
from lmkbc.run.base import Run
from lmkbc.types import Candidate, CandidateSet, Generator, Query, Source


@dataclass(frozen=True, kw_only=True)
class Deadly(GeneratorSpec):
    """deadly: the subjects that kill; odd: those that break."""

    deadly: tuple[str, ...] = ()
    odd: tuple[str, ...] = ()

    def open(self, run: Run, notes: Notes) -> Generator:
        return Echo(self)


class Echo:
    """Proposes one object."""

    def __init__(self, spec: Deadly) -> None:
        self._spec = spec

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        for query in queries:
            if query.subject in self._spec.deadly:
                os.kill(os.getpid(), signal.SIGKILL)
            if query.subject in self._spec.odd:
                raise RuntimeError("odd")
            yield CandidateSet(query, (Candidate("Peru", 1.0, (Source("echo"),), "Q419"),))
