"""Pooling block by block: what waits until it can be told whose model speaks, or what the background is."""

from __future__ import annotations

from collections.abc import Sequence

from lmkbc.select.pool import Pool, distinct, model_of
from lmkbc.types import CandidateSet


class Merging:
    """A pool of a run's blocks, one after the other.

    named: what generators are called that say so before they speak, "" for the others. Blocks wait until it is known
    which model each generator is, and with "background" until the last.
    """

    def __init__(self, pool: Pool, named: Sequence[str] = ()) -> None:
        self._pool, self._models = pool, list(named)
        self._waiting: list[list[CandidateSet]] = []

    def add(self, groups: Sequence[Sequence[CandidateSet]], *, last: bool) -> list[CandidateSet]:
        """The sets that are pooled by now: of these groups and those before, or none yet."""
        self._models = self._models or [""] * len(groups)
        self._waiting = self._waiting or [[] for _ in groups]
        for place, group in enumerate(groups):
            self._models[place] = self._models[place] or model_of(group)
            self._waiting[place] += group
        if not last and (not all(self._models) or self._pool.how.method == "background"):
            return []
        waiting, self._waiting = self._waiting, []
        return list(self._pool.merged(waiting, distinct(self._models)))
