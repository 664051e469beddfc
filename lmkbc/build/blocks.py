"""A stand-in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from lmkbc.pipeline import propose
from lmkbc.progress import Report, silent
from lmkbc.recipe import Recipe
from lmkbc.run import Run
from lmkbc.types import CandidateSet, Query

BLOCK = 2048


class Block(NamedTuple):
    """A block."""

    queries: tuple[Query, ...]
    sets: tuple[CandidateSet, ...]


def proposing(
    run: Run, recipe: Recipe, queries: Iterable[Query], report: Report = silent, total: int | None = None
) -> Iterator[Block]:
    """Propose block by block."""
    whole, done = iter(queries), 0
    while block := list(islice(whole, BLOCK)):
        made = propose(run, recipe, block)
        yield Block(made.queries, made.sets)
        done += len(block)
        report("build (queries)", done, total)
