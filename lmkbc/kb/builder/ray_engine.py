"""Engine that answers blocks by actors of Ray Data, on this machine or on a cluster.

Blocks are sent as Arrow tables of integers and names, and tables of facts come back. Only the driver writes, so no
shared file system is needed. Finished work is recorded in the build's shards and in the store of answers, never in Ray.
So a driver or worker that was killed repeats nothing.
"""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
import socket
import sys
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import ray
import ray.data
import ray.exceptions

from lmkbc.errors import InputError, LmkbcError
from lmkbc.kb.builder.engine import DIED, Answers, ShardPart, Work, Worker
from lmkbc.kb.builder.facts import Ask, Maker, Tables
from lmkbc.types import Query

log = logging.getLogger(__name__)

ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})")
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
AWAY = 5.0
"""Seconds to wait for a connection to a cluster's machine."""
TRIES = 2
"""Times that a block is begun if workers die in it: the first death may have another cause."""
OBJECTS = 256 * 2**20
"""Bytes of memory for data between driver and workers on this machine. Blocks are small."""
ASKED = pa.schema(
    [
        ("shard", pa.int64()),
        ("start", pa.int64()),
        ("row", pa.list_(pa.int64())),
        ("subject", pa.list_(pa.string())),
        ("relation", pa.list_(pa.string())),
        ("subject_id", pa.list_(pa.string())),
    ]
)
"""A block is one row, so that Ray can neither split nor join blocks."""
MADE = pa.schema(
    [
        ("shard", pa.int64()),
        ("start", pa.int64()),
        ("tables", pa.list_(pa.large_binary())),
        ("worker", pa.string()),
        ("usage", pa.string()),
        ("remarks", pa.list_(pa.string())),
        ("error", pa.string()),
        ("exit_code", pa.int64()),
    ]
)


class _RayEngine:
    """Engine on a cluster to which this process is connected.

    workers: number of actors, each with its own models. gpus: accelerators per worker. With accelerators, selection
    runs in separate tasks, since it needs none.
    """

    def __init__(self, workers: int, gpus: float = 0.0) -> None:
        self.workers, self._gpus = workers, gpus
        self._usage: dict[str, Mapping[str, Any]] = {}

    @property
    def usage(self) -> Sequence[Mapping[str, Any]]:
        """Return the usage of each worker, as its last block reported it."""
        return [*self._usage.values()]

    def tables(self, work: Work, parts: Iterable[ShardPart]) -> Iterator[tuple[ShardPart, Tables]]:
        """Yield each part with its tables, in any order. Returned parts have no queries."""
        sent: list[Any] = [ray.put(_asked(part)) for part in parts]
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = context.print_on_execution_start = False
        deaths = _Deaths.options(num_cpus=0, max_restarts=-1).remote()  # type: ignore[attr-defined]
        answered = ray.data.from_arrow_refs(sent).map_batches(
            _Actor,
            fn_constructor_args=(work.shared(self.workers), deaths, not self._gpus),
            batch_size=1,
            batch_format="pyarrow",
            compute=ray.data.ActorPoolStrategy(size=self.workers, max_tasks_in_flight_per_actor=2),
            num_cpus=0 if self._gpus else 1,
            num_gpus=self._gpus or None,
        )
        if self._gpus:
            select: Any = _decided
            answered = answered.map_batches(select, fn_args=(work.maker,), batch_size=1, batch_format="numpy")
        logged: set[str] = set()
        self._usage.clear()
        batches: Iterable[Any] = answered.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0)
        for batch in batches:
            for row in batch.to_pylist():
                for remark in row["remarks"] or ():
                    if remark not in logged:
                        logged.add(remark)
                        log.info("%s", remark)
                if row["error"] is not None:
                    raise (InputError if row["exit_code"] == InputError.exit_code else LmkbcError)(row["error"])
                self._usage[row["worker"]] = json.loads(row["usage"])
                yield ShardPart(row["shard"], row["start"], ()), Tables.decoded(row["tables"])


@ray.remote
class _Deaths:
    """Counts how often each block was begun. It survives workers that die in one."""

    def __init__(self) -> None:
        self._begun: Counter[tuple[int, int]] = Counter()

    def begin(self, shard: int, start: int) -> bool:
        """Return whether to begin a block once more."""
        self._begun[shard, start] += 1
        return self._begun[shard, start] <= TRIES


class _Actor:
    """A worker that loads its models once. decides: whether it also selects, as workers without accelerators do."""

    def __init__(self, work: Work, deaths: Any, decides: bool) -> None:
        self._worker, self._deaths, self._name = Worker(work), deaths, uuid.uuid4().hex
        self._maker = work.maker if decides else None

    def __call__(self, batch: pa.Table) -> Any:
        """Return the answers to the batch's one block, or the message of an error that ends the build."""
        (asked,) = batch.to_pylist()
        row: dict[str, Any] = {name: asked[name] for name in ("shard", "start")}
        try:
            is_begun = ray.get(self._deaths.begin.remote(**row))
            row["answers"] = self._worker.answers(_asks(asked)) if is_begun else Answers.lacking(_asks(asked), DIED)
        except LmkbcError as error:
            row |= {"error": str(error), "exit_code": error.exit_code}
        row |= {"remarks": self._worker.remarks, "usage": json.dumps(self._worker.usage, default=dict)}
        block = np.empty(1, dtype=object)
        block[0] = row | {"worker": self._name}
        return {"block": block} if self._maker is None else _decided({"block": block}, self._maker)


def _decided(batch: dict[str, Any], maker: Maker) -> pa.Table:
    """Return the rows of a batch with tables in place of answers."""
    made = []
    for row in batch["block"]:
        answers = row.pop("answers", None)
        tables = None if answers is None else answers.tables(maker).encoded()
        made.append(row | {"tables": tables})
    return pa.Table.from_pylist(made, schema=MADE)


def _asked(part: ShardPart) -> pa.Table:
    rows, queries = zip(*part.asks, strict=True)
    asked = {name: [getattr(query, name) for query in queries] for name in ("subject", "relation", "subject_id")}
    return pa.Table.from_pylist([{"shard": part.shard, "start": part.start, "row": list(rows), **asked}], schema=ASKED)


def _asks(asked: Mapping[str, Any]) -> list[Ask]:
    columns = (asked[name] for name in ("row", "subject", "relation", "subject_id"))
    return [Ask(row, Query(subject, relation, qid)) for row, subject, relation, qid in zip(*columns, strict=True)]


@contextmanager
def connected(address: str | None, workers: int | None, gpus: float = 0.0) -> Iterator[_RayEngine]:
    """Yield an engine on the cluster at an address (HOST:PORT or auto); without an address, on this machine alone.

    workers: default: the number of the cluster's processors, or of its shares of accelerators if `gpus` is set.
    InputError for more; LmkbcError if there is no cluster.
    """
    processors = os.cpu_count() or 1
    settings: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL, "configure_logging": False}
    if address is None:
        settings |= {
            "num_cpus": max(processors, workers or 0),
            "include_dashboard": False,
            "object_store_memory": OBJECTS,
        }
        if not {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_AUTH_MODE"} & os.environ.keys():
            os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)  # otherwise Ray writes one to the user's home
    else:
        _reached(address)
    for name in ("ray", "ray.data"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        with _silenced():
            ray.init(address=address or "local", **settings)
    except (ray.exceptions.RayError, ConnectionError, RuntimeError, ValueError) as error:
        raise LmkbcError(f"{_cluster(address)} cannot be used ({_line(error)}): see 'ray status' there") from None
    try:
        kind, each = ("GPU", gpus) if gpus else ("CPU", 1)
        most = int(ray.cluster_resources().get(kind, 0) / each)
        if most < (workers or 1):
            has = f"{most} accelerators of that share" if gpus else f"{most} processors"
            raise InputError(f"--workers is {workers or 1}, and {_cluster(address)} has {has}: ask for fewer")
        machines = {node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}
        if len(machines) > 1:
            log.info(
                "%d machines work: a store that is a file is one on each, so that --store URL is better", len(machines)
            )
        yield _RayEngine(workers or most, gpus)
    except ray.exceptions.RayError as error:
        raise LmkbcError(
            f"{_cluster(address)} broke off ({_line(error)}): what is finished is kept, so run the command again"
        ) from None
    finally:
        ray.shutdown()


@contextmanager
def _silenced() -> Iterator[None]:
    """Hide what Ray's libraries write to file descriptor 2 while they start. Errors are still raised."""
    sys.stderr.flush()
    screen, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(screen, 2)
        os.close(screen)
        os.close(nowhere)


def _reached(address: str) -> None:
    """Raise LmkbcError within seconds if nothing answers. Ray would try for a minute and a half, then exit."""
    if address == "auto":
        return
    parts = ADDRESS.fullmatch(address)
    if parts is None:
        raise InputError(f"--address is {address!r}: give HOST:PORT of the cluster's head, or auto")
    host, port = parts[1].strip("[]"), int(parts[2])
    try:
        socket.create_connection((host, port), timeout=AWAY).close()
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise LmkbcError(
            f"no Ray cluster at {address} ({why}): start one with 'ray start --head', or leave out --address"
        ) from None


def _cluster(address: str | None) -> str:
    return f"the Ray cluster at {address}" if address else "Ray on this machine"


def _line(error: BaseException) -> str:
    return " ".join(COLOURS.sub("", str(error)).split())[:300] or type(error).__name__
