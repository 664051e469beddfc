"""Directory of a knowledge base: its tables appear only when they are complete.

Each shard is one file below `unfinished/`, which begins with its checksum, and is replaced as a whole. When all shards
are there, the tables and their manifest are written to a staged directory. It then replaces an earlier base (see
`files.atomic`).

Tables are Parquet files, called parts: the rows of shards are joined into parts of many rows. `facts/` has a directory
for each relation. Every other table is one directory.

A finished base is reopened if queries failed. Its shards are written below `unfinished/`, and the old base stays until
the new one replaces it. Files with other names than the build's own are never touched.
"""

from __future__ import annotations

import io
import logging
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
import polars as pl
from msgspec import structs

from lmkbc.errors import InputError, LmkbcError
from lmkbc.files import atomic, checksum, writable
from lmkbc.files.writable import writing_alone
from lmkbc.kb.base.manifest import (
    MANIFEST,
    PART,
    TIMING,
    UNFINISHED,
    Manifest,
    Shard,
    differing,
    partition,
    read_manifest,
    written,
)
from lmkbc.kb.base.schemas import SCHEMA_VERSION, SCHEMAS
from lmkbc.kb.builder.facts import Tables, sums_of
from lmkbc.kb.builder.settle import REMOVED, Settled, Settlement, restored
from lmkbc.progress import Report, silent, tracked

ROWS = 1 << 16
"""Least number of rows of a joined part: readers are slow with row groups of less than some thousand rows."""
SINGLE = "replies"
"""Table with a part per shard, since its texts are long."""
Slice = tuple[str, int, int]
"""Rows of a part: its name, the first row, and the number of rows."""


def part(folder: str, number: int) -> str:
    """Return the name of a part."""
    return f"{folder}/part-{number:06d}.parquet"


def write_parts(root: Path, shards: Iterable[Settled], run: str) -> Iterator[tuple[str, str]]:
    """Write the tables of shards in parts of at least `ROWS` rows, except the last ones. Yield names and SHA-256."""
    held, done = defaultdict[str, list[pl.DataFrame]](list), Counter[str]()
    for settled in shards:
        for folder, frame in _folders(*settled):
            held[folder].append(frame)
            if folder == SINGLE or sum(map(len, held[folder])) >= ROWS:
                yield _write(root, part(folder, done[folder]), held.pop(folder), run)
                done[folder] += 1
    for folder, frames in held.items():
        yield _write(root, part(folder, done[folder]), frames, run)


def _folders(tables: Tables, removed: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield (directory, rows) of some tables. Empty ones are left out, except for `nothing`."""
    for (relation,), frame in tables.facts.partition_by("relation", as_dict=True, include_key=False).items():
        yield partition(str(relation)), frame
    yield "nothing", tables.nothing
    for folder, frame in (("missing", tables.missing), ("removed", removed), (SINGLE, tables.replies)):
        if len(frame):
            yield folder, frame


def _write(root: Path, name: str, frames: Sequence[pl.DataFrame], run: str) -> tuple[str, str]:
    buffer = io.BytesIO()
    pl.concat(frames).write_parquet(buffer, metadata={"lmkbc.schema": SCHEMA_VERSION, "lmkbc.run": run})
    atomic.write_flushed(root / name, buffer.getvalue())
    return name, checksum.sha256(buffer.getvalue())


def slices(shards: Sequence[Shard]) -> dict[int, list[Slice]]:
    """Return shard -> where its rows are in the parts that `write_parts` made."""
    of_shard: dict[int, list[Slice]] = {shard.number: [] for shard in shards}
    number, rows = Counter[str](), Counter[str]()  # of the part that is filled next
    for shard in shards:
        sizes = {partition(relation): count for relation, count in shard.facts.items()}
        sizes |= {"nothing": sum(shard.nothing.values()), "missing": sum(shard.failed.values())}
        sizes |= {"removed": sum(shard.removed.values()), SINGLE: sum(shard.replies.values())}
        for folder, size in sizes.items():
            if size or folder == "nothing":
                of_shard[shard.number].append((part(folder, number[folder]), rows[folder], size))
                rows[folder] += size
                if folder == SINGLE or rows[folder] >= ROWS:
                    number[folder] += 1
                    rows[folder] = 0
    return of_shard


def read_parts(root: Path, some: Iterable[Slice]) -> Tables:
    """Read the tables of a shard from parts, as they were before settlement."""
    frames = {table: [pl.DataFrame(schema=schema)] for table, schema in {**SCHEMAS, "removed": REMOVED}.items()}
    for name, start, rows in some:
        frame = pl.read_parquet(root / name, glob=False, hive_partitioning=False).slice(start, rows)
        if folder := re.match(r"facts/relation=([^/]+)", name):
            frame = frame.with_columns(relation=pl.lit(unquote(folder[1])))
        frames[name.partition("/")[0]].append(frame)
    facts, nothing, missing, replies, removed = (
        pl.concat(some, how="diagonal").select(some[0].columns) for some in frames.values()
    )
    return restored(Tables(facts, nothing, missing, replies=replies), removed)


log = logging.getLogger(__name__)

BASE = atomic.DirectoryKind("a knowledge base", MANIFEST, beside=frozenset({TIMING}), form=PART)
SHARD = re.compile(r"[0-9]{6,}\.shard")
_NAME = rf"(?:manifest\.json|{SHARD.pattern})"
OWN = re.compile(rf"{_NAME}|\.{_NAME}\.[0-9a-f]{{8}}-[0-9]+\.[0-9a-f]{{8}}")
"""Names of files below `unfinished/`, and of files during writing."""


class _Stored(msgspec.Struct, frozen=True):
    """Content of a shard's file. run: id of the build. tables: the tables in Arrow's format."""

    run: str
    shard: Shard
    tables: list[bytes]


class Directory:
    """A build's directory. path: its path as the user gave it."""

    def __init__(self, path: Path) -> None:
        self.path, self._stage = path, path / UNFINISHED

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other builds out. InputError if another build is running, or if the directory cannot be used.

        LmkbcError if the machine refuses a file later, as a full disk does.
        """
        with writing_alone(self.path):
            others = {entry.name for entry in self.path.iterdir()} if self.path.is_dir() else set()
            killed = others == {UNFINISHED} and all(OWN.fullmatch(path.name) for path in self._stage.iterdir())
            if others and not killed and self._read() is None:
                raise InputError(
                    f"{self.path} holds files that are of no build, first {min(others)!r}: name a directory that is "
                    "new or empty"
                )
            with writable.refusals(self.path):
                self.path.mkdir(parents=True, exist_ok=True)
            try:
                yield
            except OSError as error:
                raise LmkbcError(
                    f"{self.path}: the machine refused {error.filename or 'to write'}: {error.strerror or error}; mend "
                    "that, and build again: finished shards are kept"
                ) from error

    def _read(self) -> Manifest | None:
        """Return the manifest that is valid: of the unfinished build, else of the finished one."""
        return read_manifest(self._stage / MANIFEST) or read_manifest(self.path / MANIFEST)

    def whole(self) -> dict[str, Any] | None:
        """Return the manifest of a build that lacks nothing; None if something is left to do."""
        if (self._stage / MANIFEST).is_file():
            return None
        return msgspec.json.decode((self.path / MANIFEST).read_bytes(), type=dict[str, Any])

    def finished(self, report: Report = silent) -> Manifest:
        """Return the manifest of the finished base, after a check of its files. InputError if there is none."""
        with writing_alone(self.path):
            atomic.settle(self.path, BASE)
            base = read_manifest(self.path / MANIFEST)
            if base is None or base.shards is None:
                raise InputError(f"{self.path} holds no finished base: build one first, without --add")
            self._check(base, report)
            return base

    def begin(self, start: Mapping[str, Any], report: Report = silent, *, onto: Manifest | None = None) -> list[Shard]:
        """Return the shards that are already written; an empty list if the build is complete.

        The SHA-256 of every file is checked. A damaged shard is left out. onto: the smaller finished base that the
        build replaces, as it was read before the lock. LmkbcError if the directory now holds another base. InputError
        if it holds a build of other inputs.
        """
        with writable.refusals(self.path):
            atomic.settle(self.path, BASE)
            now = read_manifest(self.path / MANIFEST)
            if onto is not None and now != onto and (now is None or now.run != start["run"]):
                raise LmkbcError(
                    f"{self.path} was changed by another command while this one began: run this one again, which adds "
                    "to what is there now"
                )
            earlier = self._read()
            if earlier is not None and earlier.run != start["run"]:
                if (earlier.shards is not None and onto is None) or self._shards():
                    state = "an unfinished" if earlier.shards is None else "a finished"
                    more = "; --add takes over what tuning, labelled rows or a relation's module changed"
                    raise InputError(
                        f"{self.path} holds {state} build of other inputs, which differ in "
                        f"{differing(start['inputs'], earlier.inputs)}: give the same ones, or name a new "
                        f"directory{more if earlier.shards is not None else ''}"
                    )
                earlier = None  # it has written nothing yet, so it may be replaced
            if earlier is not None and earlier.shards is not None and not self._reopened(earlier, report):
                self._clear()
                return []
            atomic.write_bytes(self._stage / MANIFEST, written(start))
            return self._sound_shards(start["run"], report)

    def _check(self, finished: Manifest, report: Report) -> None:
        """Raise InputError if a file of a finished build is damaged or gone."""
        files = tracked(finished.outputs.items(), "check (files)", report)
        if lost := [name for name, sha256 in files if checksum.file_sha256(self.path / name) != sha256]:
            raise InputError(
                f"{self.path}: {len(lost)} of {len(finished.outputs)} files are damaged or gone, first {lost[0]}: "
                "build into a new directory; answers of models are in the store"
            )

    def _reopened(self, finished: Manifest, report: Report) -> bool:
        """Write the shards of a finished build again. Return False if it lacks no answers. InputError for damage."""
        self._check(finished, report)
        if not any(shard.failed for shard in finished.shards or ()):
            return False
        for shard, tables in self.read(finished):
            self.write(shard.number, tables, shard.depth, finished.run)
        return True

    def read(self, finished: Manifest) -> Iterator[tuple[Shard, Tables]]:
        """Yield the shards of a finished build, with their tables as they were before settlement."""
        there = slices(finished.shards or ())
        for shard in finished.shards or ():
            sums = sums_of(shard.tokens, shard.below_least)
            yield shard, read_parts(self.path, there[shard.number])._replace(sums=sums)

    def _shards(self) -> list[Path]:
        """Return the files of shards, in order."""
        return sorted(path for path in self._stage.glob("*.shard") if SHARD.fullmatch(path.name))

    def _sound_shards(self, run: str, report: Report) -> list[Shard]:
        """Return the undamaged shards below `unfinished/`, and remove the files of others."""
        files, sound = self._shards(), list[Shard]()
        for path in tracked(files, "check (shards)", report) if files else ():
            if (stored := _stored(path)) is None or stored.run != run:
                path.unlink()
            else:
                sound.append(stored.shard)
        if lost := len(files) - len(sound):
            log.warning("%s: %d of %d shards are damaged, and asked again", self._stage, lost, len(files))
        return sound

    def write(self, number: int, tables: Tables, depth: int, run: str) -> Shard:
        """Write a shard. If the disk refuses to write, earlier shards stay as they are."""
        shard, path = _counted(number, depth, tables), self._file(number)
        content = msgspec.msgpack.encode(_Stored(run, shard, tables.encoded()))
        atomic.write_bytes(path, checksum.signed(path.name, content))
        return shard

    def _file(self, number: int) -> Path:
        return self._stage / f"{number:06d}.shard"

    def tables(self, number: int) -> Tables:
        """Read the tables of a shard of an unfinished build. LmkbcError if they are damaged."""
        if (stored := _stored(self._file(number))) is None:
            raise LmkbcError(
                f"{self._file(number)} is not what was written a moment ago: look at the disk, and run the command "
                "again"
            )
        return Tables.decoded(stored.tables)

    def settled(self, shard: Shard, settlement: Settlement) -> Shard:
        """Return the record of a shard after its facts are settled."""
        if not settlement.touches(shard.number):
            return shard
        tables, removed = settlement.of(shard.number, self.tables(shard.number))
        return structs.replace(_counted(shard.number, shard.depth, tables), removed=_counts(removed))

    def finish(
        self, whole: Mapping[str, Any], timing: Mapping[str, Any], settlement: Settlement, subjects: pl.DataFrame
    ) -> dict[str, Any]:
        """Write the tables of all shards, replace the base with them, and return the manifest that lists them.

        timing: what differs from run to run; it is written beside the manifest. subjects: the given subjects.
        """
        numbers = [shard["number"] for shard in whole["shards"]]
        with atomic.replacing(self.path, BASE) as stage:
            tables = (settlement.of(number, self.tables(number)) for number in numbers)
            outputs = dict(write_parts(stage, tables, whole["run"]))
            for number, frame in enumerate(settlement.entities.tables(ROWS)):
                outputs |= [_write(stage, part("entities", number), [frame], whole["run"])]
            outputs |= [
                _write(
                    stage,
                    part("subjects", 0),
                    [subjects.with_row_index("subject_row").cast({"subject_row": pl.Int64})],
                    whole["run"],
                )
            ]
            about = written({**whole, "outputs": dict(sorted(outputs.items()))})
            atomic.write_flushed(stage / TIMING, msgspec.json.encode(timing))
            atomic.write_flushed(stage / MANIFEST, about)
        self._clear()
        return msgspec.json.decode(about, type=dict[str, Any])

    def _clear(self) -> None:
        """Remove the files of builds below `unfinished/`, the manifest first. Files with other names stay."""
        (self._stage / MANIFEST).unlink(missing_ok=True)
        for path in self._stage.iterdir() if self._stage.is_dir() else ():
            if OWN.fullmatch(path.name):
                path.unlink()
        with suppress(OSError):  # not empty, or absent
            self._stage.rmdir()
        if self._stage.is_dir():
            log.warning("%s holds files that are of no build: they are not removed", self._stage)


def _stored(path: Path) -> _Stored | None:
    """Read a shard's file; None if it is absent or damaged."""
    content = checksum.unsigned(path.name, path.read_bytes()) if path.is_file() else None
    return None if content is None else msgspec.msgpack.decode(content, type=_Stored)


def _counted(number: int, depth: int, tables: Tables) -> Shard:
    """Return the record of a shard with these tables."""
    facts = tables.facts
    return Shard(
        number=number,
        depth=depth,
        queries=facts.select("subject_row", "relation").n_unique() + len(tables.nothing) + len(tables.missing),
        facts=_counts(facts),
        linked=_counts(facts.filter(pl.col("object_id").is_not_null())),
        stated_by_labels=_counts(facts.filter(pl.col("stated_by").is_not_null())),
        quoted=_counts(facts.filter(pl.col("quote").is_not_null())),
        nothing=_counts(tables.nothing),
        failed=_counts(tables.missing),
        replies=_counts(tables.replies),
        tokens=_sum(tables.sums, "tokens"),
        below_least=_sum(tables.sums, "below_least"),
    )


def _sum(sums: pl.DataFrame, column: str) -> dict[str, int]:
    """Return relation -> sum of a column, without sums of 0."""
    every = sums.group_by("relation").agg(pl.col(column).sum()).filter(pl.col(column) > 0)
    return dict(sorted(every.iter_rows()))


def _counts(frame: pl.DataFrame) -> dict[str, int]:
    return dict(sorted(frame["relation"].value_counts().iter_rows()))
