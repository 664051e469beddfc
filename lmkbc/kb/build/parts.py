"""Parts: the Parquet files of a base. The rows of shards are joined into parts of many rows.

`facts/` has a directory for each relation. Every other table is one directory.
"""

from __future__ import annotations

import io
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from urllib.parse import quote, unquote

import polars as pl

from lmkbc.files import atomic
from lmkbc.files.checksum import sha256
from lmkbc.kb.build.facts import SCHEMA_VERSION, SCHEMAS, Tables
from lmkbc.kb.build.manifest import Shard
from lmkbc.kb.build.settle import REMOVED, Settled, restored

PART = re.compile(r"(?:facts/relation=[^/]+|nothing|missing|removed|entities)/part-[0-9]{6,}\.parquet")
ROWS = 1 << 16
"""Least number of rows of a joined part: readers are slow with row groups of less than some thousand rows."""
Slice = tuple[str, int, int]
"""Rows of a part: its name, the first row, and the number of rows."""


def part(folder: str, number: int) -> str:
    """Return the name of a part."""
    return f"{folder}/part-{number:06d}.parquet"


def partition(relation: str) -> str:
    """Return the directory of a relation's facts."""
    return f"facts/relation={quote(relation, safe='')}"


def write(root: Path, shards: Iterable[Settled], run: str) -> Iterator[tuple[str, str]]:
    """Write the tables of shards in parts of at least `ROWS` rows, except the last ones. Yield names and SHA-256."""
    held, done = defaultdict[str, list[pl.DataFrame]](list), Counter[str]()
    for settled in shards:
        for folder, frame in _folders(*settled):
            held[folder].append(frame)
            if sum(map(len, held[folder])) >= ROWS:
                yield _write(root, part(folder, done[folder]), held.pop(folder), run)
                done[folder] += 1
    for folder, frames in held.items():
        yield _write(root, part(folder, done[folder]), frames, run)


def write_table(root: Path, folder: str, frames: Iterable[pl.DataFrame], run: str) -> dict[str, str]:
    """Write a table that belongs to no shard, one part per frame. Return name -> SHA-256."""
    return dict(_write(root, part(folder, number), [frame], run) for number, frame in enumerate(frames))


def _folders(tables: Tables, removed: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield (directory, rows) of some tables. Empty ones are left out, except for `nothing`."""
    for (relation,), frame in tables.facts.partition_by("relation", as_dict=True, include_key=False).items():
        yield partition(str(relation)), frame
    yield "nothing", tables.nothing
    for folder, frame in (("missing", tables.missing), ("removed", removed)):
        if len(frame):
            yield folder, frame


def _write(root: Path, name: str, frames: Sequence[pl.DataFrame], run: str) -> tuple[str, str]:
    buffer = io.BytesIO()
    pl.concat(frames).write_parquet(buffer, metadata={"lmkbc.schema": SCHEMA_VERSION, "lmkbc.run": run})
    atomic.write_flushed(root / name, buffer.getvalue())
    return name, sha256(buffer.getvalue())


def slices(shards: Sequence[Shard]) -> dict[int, list[Slice]]:
    """Return shard -> where its rows are in the parts that `write` made."""
    found: dict[int, list[Slice]] = {shard.number: [] for shard in shards}
    number, rows = Counter[str](), Counter[str]()  # of the part that is filled next
    for shard in shards:
        sizes = {partition(relation): count for relation, count in shard.facts.items()}
        sizes |= {"nothing": sum(shard.nothing.values()), "missing": sum(shard.failed.values())}
        sizes["removed"] = sum(shard.removed.values())
        for folder, size in sizes.items():
            if size or folder == "nothing":
                found[shard.number].append((part(folder, number[folder]), rows[folder], size))
                rows[folder] += size
                if rows[folder] >= ROWS:
                    number[folder] += 1
                    rows[folder] = 0
    return found


def read(root: Path, some: Iterable[Slice]) -> Tables:
    """Read the tables of a shard from parts, as they were before settlement."""
    frames = {table: [pl.DataFrame(schema=schema)] for table, schema in {**SCHEMAS, "removed": REMOVED}.items()}
    for name, start, rows in some:
        frame = pl.read_parquet(root / name, glob=False, hive_partitioning=False).slice(start, rows)
        if folder := re.match(r"facts/relation=([^/]+)", name):
            frame = frame.with_columns(relation=pl.lit(unquote(folder[1])))
        frames[name.partition("/")[0]].append(frame)
    facts, nothing, missing, removed = (
        pl.concat(some, how="diagonal").select(some[0].columns) for some in frames.values()
    )
    return restored(Tables(facts, nothing, missing), removed)
