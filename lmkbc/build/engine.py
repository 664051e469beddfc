"""Worker of a build, on any machine: it reads blocks of queries and returns tables of facts, without files between."""

from __future__ import annotations

import logging
import traceback
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import polars as pl

from lmkbc.build.facts import Maker, Tables
from lmkbc.errors import InputError, LmkbcError
from lmkbc.models.budget import MAX_COST, MAX_TOKENS
from lmkbc.models.store_place import Database, default_place
from lmkbc.pipeline import Steps
from lmkbc.progress import Report
from lmkbc.recipe import Recipe
from lmkbc.run.base import Run
from lmkbc.types import CandidateSet, Query, State

log = logging.getLogger(__name__)

REACHED = {option: f"{option} is reached" for option in (MAX_TOKENS, MAX_COST)}
"""Why queries are missing that were not asked, by the option that limits what is spent."""
HOPELESS = 8
"""Queries of a block that break alike: then it is not they that are bad."""


class Ask(NamedTuple):
    """A query, and the place of its subject among the subjects."""

    row: int
    query: Query


class ShardPart(NamedTuple):
    """A block of a shard's queries. start: the place of the first among the shard's."""

    shard: int
    start: int
    asks: Sequence[Ask]


class Engine(Protocol):
    """Workers that answer blocks outside of this process."""

    @property
    def workers(self) -> int:
        """Return how many blocks are answered at a time elsewhere."""

    @property
    def usage(self) -> Sequence[Mapping[str, Any]]:
        """Return the usage of each worker that answered the last parts, as `Steps.usage` has it."""

    def tables(self, work: Work, parts: Iterable[ShardPart]) -> Iterator[tuple[ShardPart, Tables]]:
        """Yield each part with its tables, in any order. LmkbcError where the work cannot go on."""


class Ledger(Protocol):
    """Record that outlives a worker: the ranges of a block's asks that were begun, as [start, stop)."""

    def begin(self, start: int, stop: int) -> bool:
        """Return whether a range is to be begun: not where workers died of it."""

    def end(self, start: int, stop: int) -> None:
        """Note that a range that was begun is answered."""


@dataclass(frozen=True, slots=True)
class Work:
    """Data of a worker. Its files lie at the same places on every machine of the build."""

    run: Run
    recipe: Recipe
    maker: Maker

    @property
    def limit(self) -> str | None:
        """Return that a limit of what may be spent is reached; None while none is."""
        return next((REACHED[one.reached] for one in self.run.budgets if one.reached), None)

    def shared(self, workers: int) -> Work:
        """Return the same for one of so many workers elsewhere: its paths whole, and its share of what may be spent.

        InputError for a store whose password would have to travel along.
        """
        servers = self.run.servers
        store = default_place(servers.get("store"))
        cost, tokens = servers.get("max_cost"), servers.get("max_tokens")
        if isinstance(store, Database) and store.has_password:
            raise InputError(
                f"{store} is given with a password, which is sent to no worker: leave it out of --store, and set "
                "PGPASSWORD, or a line in ~/.pgpass, where workers run"
            )
        servers = {
            **servers,
            "store": store.absolute() if isinstance(store, Path) else store,
            "max_cost": None if cost is None else cost / workers,
            "max_tokens": None if tokens is None else tokens // workers,
        }
        run = replace(
            self.run,
            servers=servers,
            files=tuple(path.absolute() for path in self.run.files),
            search_table=self.run.search_table and self.run.search_table.absolute(),
            index=self.run.index and self.run.index.absolute(),
            budgets=[],
            models={},
        )
        return replace(self, run=run)


class Answers(NamedTuple):
    """A block of answered queries, of which nothing is selected yet. reasons: of those that failed, where known.

    limit: why others were not asked, if a limit is reached.
    """

    asks: Sequence[Ask]
    sets: Sequence[CandidateSet]
    reasons: Mapping[Query, str]
    limit: str | None = None

    def tables(self, maker: Maker) -> Tables:
        """Return the tables of what is selected of them."""
        made = maker.tables([ask.row for ask in self.asks], self.sets)
        known = [self.reasons.get(one.query, self.limit) for one in self.sets if one.failed]
        own = pl.Series("reason", known, dtype=pl.String)
        return made._replace(missing=made.missing.with_columns(pl.coalesce(own, pl.col("reason"))))


class ThisProcess:
    """The engine of a build without workers. total: queries that are asked; report: where each step is."""

    workers = 0

    def __init__(self, total: int, report: Report) -> None:
        self._total, self._report = total, report
        self.usage: list[Mapping[str, Any]] = []

    def tables(self, work: Work, parts: Iterable[ShardPart]) -> Iterator[tuple[ShardPart, Tables]]:
        """Yield each part with its tables, in their order; all queries are one stream to what answers them."""
        waiting: deque[ShardPart] = deque()

        def queries() -> Iterator[Query]:
            for part in parts:
                waiting.append(part)
                yield from (ask.query for ask in part.asks)

        steps, sets = Steps(work.run, work.recipe, self._report), list[CandidateSet]()
        for found in (one for block in steps.over(queries(), self._total) for one in block.sets):
            sets.append(found)
            if len(sets) == len(waiting[0].asks):
                part = waiting.popleft()
                yield part, Answers(part.asks, sets, {}, work.limit).tables(work.maker)
                sets = []
        steps.ended()
        self.usage.append(steps.usage)


class Worker:
    """Answers blocks, and loads what that takes once. remarks: what a person should know, of the last block."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._steps: Steps | None = None
        self.remarks: list[str] = []

    @property
    def usage(self) -> Mapping[str, Any]:
        """Return generator -> tokens and cost of what was asked so far."""
        return self._steps.usage if self._steps else {}

    def answers(self, asks: Sequence[Ask], ledger: Ledger | None = None) -> Answers:
        """Answer a block. LmkbcError is of the whole build: a model that is not there, a store that fails.

        A query that breaks what answers it fails alone. So does one that kills: where workers died of a range of the
        asks, its halves are begun each by itself.
        """
        with _logged() as self.remarks:
            reasons: dict[Query, str] = {}
            sets = dict[Query, CandidateSet]()
            for start, stop in _ranges(0, len(asks), ledger) if ledger else [(0, len(asks))]:
                queries = list(dict.fromkeys(ask.query for ask in asks[start:stop] if ask.query not in sets))
                sets |= {one.query: one for one in self._answered(queries, reasons)}
                if ledger:
                    ledger.end(start, stop)
            for ask in asks:
                if ask.query not in sets:
                    sets[ask.query], reasons[ask.query] = _failed(ask.query), "workers died of it"
                    log.warning("%r, %s: workers died of it", ask.query.subject, ask.query.relation)
            return Answers(asks, [sets[ask.query] for ask in asks], reasons, self._work.limit)

    def _answered(self, queries: Sequence[Query], reasons: dict[Query, str]) -> list[CandidateSet]:
        """Return the pooled sets; where answering them breaks, of each half alone. reasons: query -> what broke."""
        try:
            if self._steps is None:
                self._steps = Steps(self._work.run, self._work.recipe)
            return [one for block in self._steps.over(queries) for one in block.sets]
        except LmkbcError:
            raise
        except Exception as error:  # of one bad query, or of all
            if len(queries) > 1:
                middle = len(queries) // 2
                return [*self._answered(queries[:middle], reasons), *self._answered(queries[middle:], reasons)]
            reasons[queries[0]] = reason = _one_line(error)
            log.warning("%r, %s: %s", queries[0].subject, queries[0].relation, reason)
            if [*reasons.values()].count(reason) >= HOPELESS:
                raise LmkbcError(f"{HOPELESS} queries broke a worker alike, by {reason}: see to that first") from error
            return [_failed(queries[0])]


def _ranges(start: int, stop: int, ledger: Ledger) -> Iterator[tuple[int, int]]:
    """Yield the ranges that are begun."""
    if ledger.begin(start, stop):
        yield start, stop
    elif stop - start > 1:
        middle = (start + stop) // 2
        yield from _ranges(start, middle, ledger)
        yield from _ranges(middle, stop, ledger)


def _failed(query: Query) -> CandidateSet:
    return CandidateSet(query, (), (State.MISSING,))


def _one_line(error: BaseException) -> str:
    """Return an error in one line: what it says, and where it was."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    text = " ".join(str(error).split())[:200]
    return f"{type(error).__name__} in {Path(where.filename).name}:{where.lineno}{f' ({text})' if text else ''}"


@contextmanager
def _logged() -> Iterator[list[str]]:
    """Collect what the engine logs meanwhile."""
    messages: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    logger, handler = logging.getLogger("lmkbc"), Collector()
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield messages
    finally:
        logger.removeHandler(handler)
