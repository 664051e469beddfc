"""Parts: the Parquet files of a base, one for each table and shard, and the fewer, larger ones that they become."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TypeVar

import polars as pl

from lmkbc.build.facts import FACTS, MISSING, NOTHING, SCHEMA_VERSION, Tables
from lmkbc.build.layout import PART, TABLES, part, partition, relation_of
from lmkbc.build.manifest import Shard
from lmkbc.errors import LmkbcError
from lmkbc.files import atomic

SCHEMAS = {"facts": {name: kind for name, kind in FACTS.items() if name != "relation"}, "nothing": NOTHING}
SCHEMAS["missing"] = MISSING
ROWS = 1 << 16
"""Rows from which a part is large enough: readers are slow with row groups of less than some thousand."""
T = TypeVar("T")


def parts_of(number: int, tables: Tables) -> Iterator[tuple[str, pl.DataFrame]]:
    """The files of a shard; no file without a row, but for the table of those that have no fact."""
    for (relation,), frame in tables.facts.partition_by("relation", as_dict=True, include_key=False).items():
        yield f"{partition(str(relation))}/{part(number)}", frame
    yield f"nothing/{part(number)}", tables.nothing
    if len(tables.missing):
        yield f"missing/{part(number)}", tables.missing


def write(root: Path, name: str, frame: pl.DataFrame, run: str) -> str:
    """Write a file whole or not at all; its SHA-256."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer, metadata={"lmkbc.schema": SCHEMA_VERSION, "lmkbc.run": run})
    atomic.write_bytes(root / name, buffer.getvalue())
    return hashlib.sha256(buffer.getvalue()).hexdigest()


def read(root: Path, name: str, sha256: str) -> pl.DataFrame | None:
    """Read a file; None where it is gone, or is not what was written."""
    if not PART.fullmatch(name) or not (root / name).is_file():
        return None
    content = (root / name).read_bytes()
    if hashlib.sha256(content).hexdigest() != sha256:
        return None
    return pl.read_parquet(io.BytesIO(content), hive_partitioning=False)


def tables(root: Path, outputs: Mapping[str, str]) -> Tables | None:
    """Read the files of a shard; None where one is gone, or is not what was written."""
    frames: dict[str, list[pl.DataFrame]] = {table: [] for table in TABLES}
    for name, sha256 in outputs.items():
        if (frame := read(root, name, sha256)) is None:
            return None
        if relation := relation_of(name):
            frame = frame.with_columns(pl.lit(relation).alias("relation"))
        frames[name.partition("/")[0]].append(frame)
    facts, nothing, missing = (
        pl.concat([pl.DataFrame(schema=schema), *(frame.select(*schema) for frame in frames[table])])
        for table, schema in zip(TABLES, (FACTS, NOTHING, MISSING), strict=True)
    )
    return Tables(facts, nothing, missing)


def copied(source: Path, target: Path, outputs: Mapping[str, str]) -> None:
    """Copy files as they are. LmkbcError for one that is not what was written."""
    for name, sha256 in outputs.items():
        content = (source / name).read_bytes()
        if hashlib.sha256(content).hexdigest() != sha256:
            raise _damaged(source / name)
        atomic.write_bytes(target / name, content)


def compacted(source: Path, target: Path, outputs: Mapping[str, str], run: str) -> dict[str, str]:
    """Join the parts of each directory to files of at least `ROWS` rows but for the last: name -> SHA-256.

    LmkbcError for a part that is not what was written.
    """
    made: dict[str, str] = {}
    for folder, names in _folders(outputs):
        frames = ((frame, len(frame)) for frame in (_read(source, name, outputs[name]) for name in names))
        for number, some in enumerate(_groups(frames)):
            name = f"{folder}/{part(number)}"
            made[name] = write(target, name, pl.concat(some), run)
    return made


def parted(
    source: Path, target: Path, outputs: Mapping[str, str], shards: Sequence[Shard], run: str
) -> dict[int, dict[str, str]]:
    """Write the parts again that were joined, of the shards all of whose rows are sound.

    Gives their numbers, and of each its files with their SHA-256.
    """
    made: dict[int, dict[str, str]] = {shard.number: {} for shard in shards}
    for folder, _ in _folders(outputs):
        sizes = {shard.number: _rows(shard, folder) for shard in shards if _has(shard, folder)}
        for at, numbers in enumerate(_groups(sizes.items())):
            name = f"{folder}/{part(at)}"
            frame, start = read(source, name, outputs.get(name, "")), 0
            whole = frame is not None and len(frame) == sum(sizes[number] for number in numbers)
            for number in numbers:
                if frame is None or not whole:
                    made.pop(number, None)
                elif number in made:
                    own = f"{folder}/{part(number)}"
                    made[number][own] = write(target, own, frame.slice(start, sizes[number]), run)
                start += sizes[number]
    return made


def _folders(names: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each directory with its files, in the order of their names."""
    for folder, files in groupby(sorted(names), key=lambda name: name.rpartition("/")[0]):
        yield folder, [*files]


def _groups(sizes: Iterable[tuple[T, int]]) -> Iterator[list[T]]:
    """Yield runs of items that together have at least `ROWS` rows, but for the last run."""
    some, rows = list[T](), 0
    for item, size in sizes:
        some.append(item)
        rows += size
        if rows >= ROWS:
            yield some
            some, rows = [], 0
    if some:
        yield some


def _has(shard: Shard, folder: str) -> bool:
    """Return whether a shard wrote a file to a directory."""
    return folder == "nothing" or _rows(shard, folder) > 0


def _rows(shard: Shard, folder: str) -> int:
    """Return how many rows a shard has in a directory."""
    if relation := relation_of(folder):
        return shard.facts.get(relation, 0)
    return sum((shard.nothing if folder == "nothing" else shard.failed).values())


def _read(root: Path, name: str, sha256: str) -> pl.DataFrame:
    if (frame := read(root, name, sha256)) is None:
        raise _damaged(root / name)
    return frame


def _damaged(path: Path) -> LmkbcError:
    return LmkbcError(f"{path} is not what was written a moment ago: look at the disk, and run the command again")
