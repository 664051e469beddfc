"""Parts: the Parquet files of a base, one for each table and shard, and the fewer, larger ones that they become."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import quote

import polars as pl

from lmkbc.build.facts import FACTS, MISSING, NOTHING, SCHEMA_VERSION, Tables
from lmkbc.files import atomic

TABLES = ("facts", "nothing", "missing")
SCHEMAS = {"facts": {name: kind for name, kind in FACTS.items() if name != "relation"}, "nothing": NOTHING}
SCHEMAS["missing"] = MISSING
ROWS = 1 << 16
"""Rows from which a part is large enough: readers are slow with row groups of less than some thousand."""


def part(number: int) -> str:
    """The name of a file."""
    return f"part-{number:06d}.parquet"


def partition(relation: str) -> str:
    """The directory of a relation's facts."""
    return f"facts/relation={quote(relation, safe='')}"


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


def compacted(source: Path, target: Path, names: Iterable[str], run: str) -> dict[str, str]:
    """Join the parts of each directory to files of at least `ROWS` rows but for the last: name -> SHA-256."""
    outputs: dict[str, str] = {}
    folders: dict[str, list[str]] = {}
    for name in sorted(names):
        folders.setdefault(name.rpartition("/")[0], []).append(name)
    for folder, files in folders.items():
        for number, frame in enumerate(_joined(source / name for name in files)):
            name = f"{folder}/{part(number)}"
            outputs[name] = write(target, name, frame, run)
    return outputs


def _joined(paths: Iterable[Path]) -> Iterator[pl.DataFrame]:
    frames = list[pl.DataFrame]()
    for path in paths:
        frames.append(pl.read_parquet(path, hive_partitioning=False))
        if sum(map(len, frames)) >= ROWS:
            yield pl.concat(frames)
            frames = []
    if frames:
        yield pl.concat(frames)
