"""Names of the files of a base. Only these are removed or moved, whatever else lies among them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, unquote

MANIFEST, TIMING = "manifest.json", "timing.json"
UNFINISHED, SHARDS, JOINED = "unfinished", "shards", "joined"
TABLES = ("facts", "nothing", "missing")
FOLDERS = ("facts/relation=*", "nothing", "missing")
PART = re.compile(r"(?:facts/relation=[^/]+|nothing|missing)/part-[0-9]{6,}\.parquet")
RECORD = re.compile(r"[0-9]{6,}\.json")
TEMPORARY = re.compile(
    r"\.(part-[0-9]{6,}\.parquet|[0-9]{6,}\.json|manifest\.json|timing\.json)\.[0-9a-f]{8}-[0-9]+\.[0-9a-f]{8}"
)
"""How a file is called while it is written."""


def part(number: int) -> str:
    """Return the name of a file."""
    return f"part-{number:06d}.parquet"


def partition(relation: str) -> str:
    """Return the directory of a relation's facts."""
    return f"facts/relation={quote(relation, safe='')}"


def relation_of(name: str) -> str:
    """Return the relation of a directory or file of facts; "" for one of another table."""
    found = re.match(r"facts/relation=([^/]+)", name)
    return unquote(found[1]) if found else ""


def record(number: int) -> str:
    """Return the name of a shard's record."""
    return f"{SHARDS}/{number:06d}.json"


def parts(root: Path, name: str = "part-*.parquet") -> Iterator[str]:
    """Yield the files below a directory that are called as parts are."""
    for folder in FOLDERS:
        for path in root.glob(f"{folder}/{name}"):
            if PART.fullmatch(found := path.relative_to(root).as_posix()) and path.is_file():
                yield found


def records(stage: Path) -> list[Path]:
    """Return the records of shards, in their order."""
    return sorted(path for path in (stage / SHARDS).glob("*.json") if RECORD.fullmatch(path.name))


def clear(stage: Path) -> None:
    """Remove what a build wrote below `unfinished/`, the manifest first; somebody's own files stay."""
    for name in (MANIFEST, TIMING):
        (stage / name).unlink(missing_ok=True)
    for path in records(stage):
        path.unlink()
    remove_temporary(stage)
    clear_tables(stage / JOINED)
    clear_tables(stage)
    for folder in (stage / JOINED, stage / SHARDS, stage):
        _remove_empty(folder)


def clear_tables(root: Path) -> None:
    """Remove the parts below a directory."""
    for name in parts(root):
        (root / name).unlink()
    prune(root)


def prune(root: Path) -> None:
    """Remove the directories of parts that are empty."""
    for folder in (*FOLDERS, "facts"):
        for path in root.glob(folder):
            _remove_empty(path)


def _remove_empty(folder: Path) -> None:
    if folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir()):
        folder.rmdir()


def remove_temporary(stage: Path) -> None:
    """Remove the files that a killed build was writing."""
    for left in stage.rglob(".*"):
        if TEMPORARY.fullmatch(left.name):
            left.unlink()


def move(source: Path, target: Path) -> None:
    """Move a directory; where the target is there, file by file into it."""
    if not source.is_dir():
        return
    if not target.exists():
        os.rename(source, target)
        return
    for path in sorted(source.iterdir()):
        if path.is_dir():
            move(path, target / path.name)
        else:
            os.replace(path, target / path.name)
    source.rmdir()
