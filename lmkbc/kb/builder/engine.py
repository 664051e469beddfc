"""Worker of a build, on any machine: it maps blocks of queries to tables of facts, without files in between."""

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

from lmkbc.errors import InputError, LmkbcError
from lmkbc.kb.builder.facts import REACHED, Ask, Maker, Tables, Texts
from lmkbc.models.store_place import Database, default_place
from lmkbc.plan import Plan
from lmkbc.progress import Report
from lmkbc.run.pipeline import Block, Steps
from lmkbc.types import CandidateSet, Query, State

log = logging.getLogger(__name__)

UNASKED = "not asked yet"
"""Why queries are missing that an addition is about to ask."""
DIED = "workers died of its block"
"""Why the queries of a block are missing whose workers died."""


class ShardPart(NamedTuple):
    """A block of a shard's queries. start: index of its first query within the shard."""

    shard: int
    start: int
    asks: Sequence[Ask]


class Engine(Protocol):
    """Workers outside of this process that answer blocks."""

    @property
    def workers(self) -> int:
        """Return how many blocks are answered at the same time outside of this process."""

    @property
    def usage(self) -> Sequence[Mapping[str, Any]]:
        """Return the usage of each worker for the last parts, in the form of `Steps.usage`."""

    def tables(self, work: Work, parts: Iterable[ShardPart]) -> Iterator[tuple[ShardPart, Tables]]:
        """Yield each part with its tables, in any order. LmkbcError if the work cannot continue."""


@dataclass(frozen=True, slots=True)
class Work:
    """Data of a worker. Its files must have the same paths on every machine of the build."""

    plan: Plan
    maker: Maker

    @property
    def limit(self) -> str | None:
        """Return that a limit on tokens or cost is reached; None if no limit is."""
        return next((REACHED[budget.reached] for budget in self.plan.run.budgets if budget.reached), None)

    def shared(self, workers: int) -> Work:
        """Return the work of one of several remote workers: with absolute paths, and its share of the limits.

        InputError for a store with a password in its URL, which would be sent to workers.
        """
        run = self.plan.run
        servers = run.servers
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
            run,
            servers=servers,
            files=tuple(path.absolute() for path in run.files),
            search_table=run.search_table and run.search_table.absolute(),
            index=run.index and run.index.absolute(),
            budgets=[],
            in_memory={},
        )
        return replace(self, plan=Plan.of(run, self.plan.recipe))


class Answers(NamedTuple):
    """A block of answered queries before selection. reason: why other queries have no answer, if known.

    texts: what models wrote.
    """

    asks: Sequence[Ask]
    sets: Sequence[CandidateSet]
    reason: str | None = None
    texts: Texts | None = None

    @classmethod
    def lacking(cls, asks: Sequence[Ask], reason: str) -> Answers:
        """Return a block whose queries all failed."""
        return cls(asks, [CandidateSet(ask.query, (), (State.MISSING,)) for ask in asks], reason)

    def tables(self, maker: Maker) -> Tables:
        """Return the tables of the selected facts."""
        rows = [ask.row for ask in self.asks]
        made = maker.tables(rows, self.sets)
        reason = pl.coalesce(pl.lit(self.reason, pl.String), pl.col("reason"))
        replies = maker.replies(rows, [ask.query for ask in self.asks], self.texts or {})
        return made._replace(missing=made.missing.with_columns(reason=reason), replies=replies)


def _texts(block: Block) -> Texts:
    """Return what models wrote in a block."""
    return {
        query: [
            (one.model or one.source, [reply.text if reply else None for part in one.parts for reply in part])
            for one in own
        ]
        for query, own in block.replies.items()
    }


class ThisProcess:
    """The engine of a build without workers. total: number of queries. report: callback for progress.

    is_rest: whether earlier queries were answered before, perhaps by files that answer none of these.
    """

    workers = 0

    def __init__(self, total: int, report: Report, *, is_rest: bool = False) -> None:
        self._total, self._report, self._is_rest = total, report, is_rest
        self.usage: list[Mapping[str, Any]] = []

    def tables(self, work: Work, parts: Iterable[ShardPart]) -> Iterator[tuple[ShardPart, Tables]]:
        """Yield each part with its tables, in order. The generators see all queries as one stream."""
        waiting: deque[ShardPart] = deque()

        def queries() -> Iterator[Query]:
            for part in parts:
                waiting.append(part)
                yield from (ask.query for ask in part.asks)

        steps, sets, texts = Steps(work.plan, self._report), list[CandidateSet](), dict[Query, Any]()
        for block in steps.over(queries(), self._total):
            texts |= _texts(block)
            for candidates in block.sets:
                sets.append(candidates)
                if len(sets) == len(waiting[0].asks):
                    part = waiting.popleft()
                    own = {query: texts.pop(query) for ask in part.asks if (query := ask.query) in texts}
                    yield part, Answers(part.asks, sets, work.limit, own).tables(work.maker)
                    sets = []
        if not self._is_rest:
            steps.ended()
        self.usage.append(steps.usage)


class Worker:
    """Answers blocks; models are loaded once. remarks: messages for the user about the last block."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._steps: Steps | None = None
        self.remarks: list[str] = []

    @property
    def usage(self) -> Mapping[str, Any]:
        """Return generator -> tokens and cost so far."""
        return self._steps.usage if self._steps else {}

    def answers(self, asks: Sequence[Ask]) -> Answers:
        """Answer a block. LmkbcError ends the whole build: a missing model, or a store that fails.

        If another error is raised, no query of the block has an answer.
        """
        with _logged() as self.remarks:
            try:
                if self._steps is None:
                    self._steps = Steps(self._work.plan)
                queries = list(dict.fromkeys(ask.query for ask in asks))
                sets, texts = dict[Query, CandidateSet](), dict[Query, Any]()
                for block in self._steps.over(queries):
                    sets |= {candidates.query: candidates for candidates in block.sets}
                    texts |= _texts(block)
            except LmkbcError:
                raise
            except Exception as error:
                reason = _one_line(error)
                log.warning("%d queries have no answer, first %r: %s", len(asks), asks[0].query.subject, reason)
                return Answers.lacking(asks, reason)
            return Answers(asks, [sets[ask.query] for ask in asks], self._work.limit, texts)


def _one_line(error: BaseException) -> str:
    """Return an error in one line: its text, and where it was raised."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    text = " ".join(str(error).split())[:200]
    return f"{type(error).__name__} in {Path(where.filename).name}:{where.lineno}{f' ({text})' if text else ''}"


@contextmanager
def _logged() -> Iterator[list[str]]:
    """Collect the engine's log messages within the block."""
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
