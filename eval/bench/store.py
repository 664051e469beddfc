"""Speed of the store of answers: answers per second with 1, 8 and 64 processes that write at once.

The store is an SQLite file, or PostgreSQL with fsync. Run: python eval/bench/store.py [--url URL] [--answers N]
    [--figures FILE].
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from pathlib import Path

from lmkbc.cli.terminal import error_status
from lmkbc.models.answers import Store
from lmkbc.models.call import Call, Database, Place

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
import figures
from postgres import Server

WRITERS = (1, 8, 64)
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


def worker(place: Place, work: Work, calls: list[Call], start: Barrier, end: Barrier) -> None:
    store = Store(place)
    start.wait()
    work(store, calls)
    end.wait()
    store.close()


def rate(place: Place, work: Work, writers: int, answers: int, *, shared: bool = False) -> float:
    """Return the answers per second of all processes. shared: whether all write the same calls, in different orders."""
    context = multiprocessing.get_context("fork")
    start, end = context.Barrier(writers + 1), context.Barrier(writers + 1)
    each = max(20, answers // writers)
    running = []
    for writer in range(writers):
        own = 0 if shared else writer
        calls = [
            Call(model="m", prompt=f"{own} {draw // 10} {PROMPT}", draw=draw, revision=str(own)) for draw in range(each)
        ]
        random.Random(writer).shuffle(calls)
        running.append(context.Process(target=worker, args=(place, work, calls, start, end)))
        running[-1].start()
    start.wait()
    began = time.perf_counter()
    end.wait()
    seconds = time.perf_counter() - began
    for one in running:
        one.join()
    return each * writers / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", help="An empty PostgreSQL database; else a server is started on loopback.")
    parser.add_argument("--answers", type=int, default=3200, help="Of all writers together, each time.")
    figures.option(parser)
    given = parser.parse_args()
    server = None if given.url else Server(fsync=True)
    works: dict[str, tuple[Work, bool]] = {
        "one at a time": (one_by_one, False),
        "the same keys by all": (one_by_one, True),
        "twenty at a time": (twenty, False),
        "looked up": (look_up, False),
    }
    values: dict[str, dict[str, str]] = {}
    print(f"| answers per second | {' | '.join(f'{n} writers' for n in WRITERS)} |\n|---|{'---|' * len(WRITERS)}")
    try:
        for name, (work, shared) in works.items():
            for kind in ("SQLite", "PostgreSQL"):
                rates = []
                for writers in WRITERS:
                    with tempfile.TemporaryDirectory() as folder:
                        place: Place = Path(folder) / "store.sqlite"
                        if kind == "PostgreSQL":
                            place = Database(server.fresh("bench") if server else given.url)
                            Store(place).prune()
                        if work is look_up:
                            rate(place, twenty, writers, given.answers)
                        rates.append(rate(place, work, writers, given.answers, shared=shared))
                each = zip(WRITERS, rates, strict=True)
                values[f"{kind}, {name}"] = {f"{count} writers": f"{one:,.0f}" for count, one in each}
                print(f"| {kind}, {name} | {' | '.join(f'{one:,.0f}' for one in rates)} |", flush=True)
    finally:
        if server:
            server.close()
    figures.record(given.figures, "store", values)


if __name__ == "__main__":
    with error_status():
        main()
