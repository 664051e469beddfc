"""Speed of the store of answers: answers per second with 1, 8 and 64 processes that write at once.

The store is an SQLite file, or PostgreSQL with fsync.
"""

from __future__ import annotations

import multiprocessing
import random
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from eval.bench import one_of, parsed, parser_of
from eval.bench.figures import Table
from lmkbc.models.answers import Store
from lmkbc.models.base import Call
from lmkbc.models.store_place import Database, Place

PROMPT = "Which of these does the subject share a border with? " * 40
"""A prompt of about 2 kB, as few-shot prompts are."""
ANSWER = {"text": "France, Spain, Italy " * 10, "prompt_tokens": 512, "completion_tokens": 64}

Work = Callable[[Store, list[Call]], None]


def one_by_one(store: Store, calls: list[Call]) -> None:
    """Commit each answer by itself, as a session does."""
    for call in calls:
        store.put([(call, ANSWER)])


def twenty(store: Store, calls: list[Call]) -> None:
    """Commit several answers at once, as for draws of a prompt or a batch."""
    for start in range(0, len(calls), 20):
        store.put((call, ANSWER) for call in calls[start : start + 20])


def look_up(store: Store, calls: list[Call]) -> None:
    """Look up every call, as a resumed run does first."""
    for call in calls:
        assert store.get(call) is not None


KINDS = ("SQLite", "PostgreSQL")
WORKS: dict[str, tuple[Work, bool]] = {
    "one at a time": (one_by_one, False),
    "the same keys by all": (one_by_one, True),
    "twenty at a time": (twenty, False),
    "looked up": (look_up, False),
}


def worker(place: Place, work: Work, calls: list[Call], start: Any, end: Any) -> None:
    store = Store(place)
    start.wait()
    work(store, calls)
    end.wait()
    store.close()


def rate(place: Place, work: Work, writers: int, answers: int, *, shared: bool = False, threads: bool = False) -> float:
    """Return the answers per second of all processes, or threads.

    shared: whether all write the same calls, in different orders.
    """
    kinds: Any = threading if threads else multiprocessing.get_context("fork")
    start, end = kinds.Barrier(writers + 1), kinds.Barrier(writers + 1)
    each = max(20, answers // writers)
    running = []
    for writer in range(writers):
        own = 0 if shared else writer
        calls = [
            Call(model="m", prompt=f"{own} {draw // 10} {PROMPT}", draw=draw, revision=str(own)) for draw in range(each)
        ]
        random.Random(writer).shuffle(calls)
        kind = kinds.Thread if threads else kinds.Process
        running.append(kind(target=worker, args=(place, work, calls, start, end)))
        running[-1].start()
    start.wait()
    began = time.perf_counter()
    end.wait()
    seconds = time.perf_counter() - began
    for one in running:
        one.join()
    return each * writers / seconds


def main(argv: Sequence[str]) -> None:
    parser = parser_of(__doc__, data=False)
    parser.add_argument("--url", help="an empty PostgreSQL database; else a server is started on loopback")
    parser.add_argument("--answers", type=int, default=3200, help="of all writers together, each time")
    parser.add_argument("--writers", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--kinds", nargs="+", default=KINDS, type=one_of(KINDS))
    given = parsed(parser, argv, answers=20, writers=[1, 2], kinds=["SQLite"])
    server = None
    if "PostgreSQL" in given.kinds and not given.url:
        from postgres import Server

        server = Server(fsync=True)
    table = Table("store", "answers per second")
    try:
        for (name, (work, shared)), kind in product(WORKS.items(), given.kinds):
            cells = {}
            for writers in given.writers:
                with tempfile.TemporaryDirectory() as folder:
                    place: Place = Path(folder) / "store.sqlite"
                    if kind == "PostgreSQL":
                        place = Database(server.fresh("bench") if server else given.url)
                        Store(place).prune()
                    if work is look_up:
                        rate(place, twenty, writers, given.answers, threads=given.small)
                    done = rate(place, work, writers, given.answers, shared=shared, threads=given.small)
                cells[f"{writers} writers"] = f"{done:,.0f}"
            table.add(f"{kind}, {name}", cells)
    finally:
        if server:
            server.close()
