"""Peak memory of the process that writes a base. Run: python eval/bench/memory.py [FACTS ...].

No model is asked. In place of workers, an engine invents facts of ten relations of persons. Seven in ten objects are
linked, and there is one name per nine facts. One autobiography in twenty has two authors.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from zlib import crc32

import polars as pl
from figures import option, record

from lmkbc.api.building import build
from lmkbc.build.engine import ShardPart, Work
from lmkbc.build.facts import FACTS, MISSING, NOTHING, Tables
from lmkbc.cli.terminal import error_status
from lmkbc.relation import Relation

SIZES = (1_000_000, 3_000_000, 10_000_000)
SEVERAL = 4
"""Facts of a query, for a relation that may have several objects."""
PER_PERSON = 28
"""Facts of a person: of six relations with several objects, and of four with one."""
KEYS = ("subject_row", "subject", "relation", "property", "object", "object_id", "literal", "confidence")


class Invented:
    """Engine that invents facts, for a number of persons."""

    workers = 2
    usage: Sequence[Mapping[str, Any]] = ()

    def __init__(self, persons: int) -> None:
        self._persons = persons

    def tables(self, work: Work, parts: Iterable[ShardPart]) -> Iterator[tuple[ShardPart, Tables]]:
        """Yield each part with its facts."""
        constant = {"calibrated": True, "model": "stand-in", "run": work.maker.run, "sources": ["stand-in"]}
        for part in parts:
            rows = [
                fact
                for row, query in part.asks
                for fact in self._facts(row, query.subject, work.maker.relations[query.relation])
            ]
            made = pl.DataFrame(rows, schema={name: FACTS[name] for name in KEYS}, orient="row")
            made = made.with_columns(pl.lit(value).alias(name) for name, value in constant.items())
            empty = (pl.DataFrame(schema=schema) for schema in (NOTHING, MISSING))
            yield part, Tables(pl.concat([pl.DataFrame(schema=FACTS), made], how="diagonal"), *empty)

    def _facts(self, row: int, name: str, relation: Relation) -> Iterator[tuple[Any, ...]]:
        """Yield the facts of a query. They depend only on subject, relation and index."""
        own = relation.distinct_values
        for place in range(1 if own or relation.has_one_object() else SEVERAL):
            drawn = crc32(f"{row} {relation.name} {place}".encode())
            about, sure = (row, name, relation.name, relation.property), drawn % 1000 / 1000
            number = row - (drawn % 20 == 0) if own else drawn % self._persons
            if relation.kind == "number":
                yield *about, str(number % 9), None, str(number % 9), sure
            else:
                kind = "Book" if own else "Person" if relation.object_type == relation.subject_type else "Thing"
                yield *about, f"{kind} {number}", f"Q{len(kind)}{number:08d}" if number % 10 < 7 else None, None, sure


def measured(facts: int) -> None:
    """Build in this process, and print facts, names, peak memory in MB and seconds."""
    persons, began = facts // PER_PERSON, time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        subjects = Path(folder) / "subjects.csv"
        subjects.write_text("name,class\n" + "".join(f"Person {number},human\n" for number in range(persons)))
        base = build(
            subjects,
            Path(folder) / "kb",
            edition="2023",
            system="prior",
            untuned=True,
            engine=nullcontext(Invented(persons)),
        )
        names = base.entities.select(pl.col("names").list.len().sum()).collect().item()
        print(base.counts["facts"], names, _memory(), time.perf_counter() - began)


def _memory() -> int:
    """Return the peak memory of this process, in MB."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) * 1024 // 10**6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES, metavar="FACTS", help="about so many facts")
    parser.add_argument("--alone", type=int, help=argparse.SUPPRESS)
    option(parser)
    given = parser.parse_args()
    if given.alone:
        measured(given.alone)
        return
    rows = {}
    for size in given.sizes:  # each in its own process, whose peak memory is that of this size
        done = subprocess.run([sys.executable, __file__, "--alone", str(size)], check=True, stdout=subprocess.PIPE)
        facts, names, memory, seconds = done.stdout.split()
        cells = {"names": f"{int(names):,}", "MB": memory.decode(), "seconds": f"{float(seconds):.0f}"}
        rows[f"{int(facts):,} facts"] = cells
        print(f"{int(facts):,} facts", cells)
    record(given.figures, "memory", rows)


if __name__ == "__main__":
    with error_status():
        main()
