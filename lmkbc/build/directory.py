"""Where a knowledge base is written: a directory whose tables appear when they are whole, and not before.

Shards are written below `unfinished/`: each file under a temporary name, flushed, then renamed; a shard counts once its
record, written last, is there. When every shard is there, the manifest that lists them is written beside them, and from
then on the tables and it are only moved up. Where some queries failed, a further run moves all down again before it
writes the shards that hold them anew. What a kill left between two moves, the next run settles.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import filelock
import msgspec
import polars as pl

from lmkbc.build import manifest, parts
from lmkbc.build.facts import Tables
from lmkbc.build.manifest import Manifest, Shard
from lmkbc.errors import InputError, LmkbcError
from lmkbc.files import atomic

UNFINISHED = "unfinished"
SHARDS = "shards"
JOINED = "joined"
TIMING = "timing.json"
LOCK = ".lock"


class Directory:
    """A build's directory. path: as the user named it."""

    def __init__(self, path: Path) -> None:
        self.path, self._stage = path, path / UNFINISHED

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other builds out. InputError where one is at work, or where nothing could be written."""
        if self.path.name in ("", ".."):
            raise InputError(f"'{self.path}' is no name of a directory for a knowledge base: name a new one")
        atomic.check_directory(self.path)
        others = {entry.name for entry in self.path.iterdir()} - {LOCK} if self.path.is_dir() else set()
        if others and self._read() is None and not self._blank(others):
            raise InputError(
                f"{self.path} holds files that are of no build, first {min(others)!r}: name a directory that is new or "
                "empty"
            )
        with atomic.refusals(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            lock = filelock.FileLock(self.path / LOCK)
            try:
                lock.acquire(timeout=0)
            except filelock.Timeout:
                raise InputError(f"{self.path} is being built by another command: wait for its end") from None
        try:
            yield
        finally:
            lock.release()

    def _blank(self, others: set[str]) -> bool:
        """Whether nothing is there but what a build left that was killed before it began."""
        return others == {UNFINISHED} and all(path.name.startswith(".") for path in self._stage.iterdir())

    def _read(self) -> Manifest | None:
        """The manifest that counts: the one that is not finished, else the finished one."""
        for place in (self._stage, self.path):
            if (found := _manifest(place / manifest.NAME)) is not None:
                return found
        return None

    def whole(self) -> dict[str, Any] | None:
        """The manifest of a build that has begun and lacks nothing; None where something is left to be done."""
        if self._stage.is_dir():
            return None
        made: dict[str, Any] = msgspec.json.decode((self.path / manifest.NAME).read_bytes())
        return made

    def begin(self, start: Mapping[str, Any]) -> list[Shard]:
        """The shards that are written already, none of a build that lacks nothing. InputError for other inputs."""
        with atomic.refusals(self.path):
            self._settle()
            for left in self._stage.rglob(".*"):
                left.unlink()
            found, records = self._read(), [*self._records()]
            if found is None or (found.shards is None and not records):
                for name in parts.TABLES:  # of a shard that was not finished
                    shutil.rmtree(self._stage / name, ignore_errors=True)
                atomic.write_bytes(self._stage / manifest.NAME, manifest.written(start))
                return []
            if found.run != start["run"]:
                state = "an unfinished" if found.shards is None else "a finished"
                raise InputError(
                    f"{self.path} holds {state} build of other inputs, which differ in "
                    f"{manifest.differing(start['inputs'], found.inputs)}: give the same ones, or name a new directory"
                )
            if found.shards is None:
                return records
            if not any(shard.failed for shard in found.shards):
                return []
            self._reopen(start, found.shards)
            return [*found.shards]

    def _records(self) -> Iterator[Shard]:
        for path in sorted((self._stage / SHARDS).glob("[0-9]*.json")):
            try:
                shard = msgspec.json.decode(path.read_bytes(), type=Shard)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                continue
            if all((self._stage / name).is_file() for name in shard.outputs):
                yield shard

    def write(self, number: int, tables: Tables, depth: int, run: str) -> Shard:
        """Write a shard. LmkbcError where the disk refuses, which leaves the shards before it as they are."""
        with _full_disk(self.path):
            self._remove(number)
            files = parts.parts_of(number, tables)
            outputs = {name: parts.write(self._stage, name, frame, run) for name, frame in files}
            facts = tables.facts
            shard = Shard(
                number=number,
                depth=depth,
                queries=facts.select("subject_row", "relation").n_unique() + len(tables.nothing) + len(tables.missing),
                facts=_counts(facts),
                linked=_counts(facts.filter(pl.col("object_id").is_not_null())),
                nothing=_counts(tables.nothing),
                failed=_counts(tables.missing),
                outputs=outputs,
            )
            atomic.write_bytes(self._record(number), msgspec.json.encode(shard))
            return shard

    def facts(self, shards: Sequence[Shard], relation: str, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Some columns of a relation's facts, shard by shard, while the build is not finished."""
        for shard in shards:
            if (name := f"{parts.partition(relation)}/{parts.part(shard.number)}") in shard.outputs:
                yield pl.read_parquet(self._stage / name, columns=list(columns), hive_partitioning=False)

    def _record(self, number: int) -> Path:
        return self._stage / SHARDS / f"{number:06d}.json"

    def _remove(self, number: int) -> None:
        """Remove what there is of a shard, its record first."""
        self._record(number).unlink(missing_ok=True)
        for pattern in ("facts/*", "nothing", "missing"):
            for path in self._stage.glob(f"{pattern}/{parts.part(number)}"):
                path.unlink()

    def finish(self, whole: Mapping[str, Any], timing: Mapping[str, Any]) -> None:
        """Declare the tables whole, and bring them to their place.

        Where no query failed, so that no shard is written again, the parts are joined first. timing: what is another in
        every run, and stands beside the manifest.
        """
        with _full_disk(self.path):
            shards = whole["shards"]
            outputs = {name: sha256 for shard in shards for name, sha256 in shard["outputs"].items()}
            shutil.rmtree(self._stage / JOINED, ignore_errors=True)
            if not whole["counts"]["failed"] and len(shards) > 1:
                outputs = parts.compacted(self._stage, self._stage / JOINED, outputs, whole["run"])
                whole = {**whole, "shards": [{**shard, "outputs": {}} for shard in shards]}
            atomic.write_bytes(self._stage / TIMING, msgspec.json.encode(timing))
            atomic.write_bytes(self._stage / manifest.NAME, manifest.written({**whole, "outputs": outputs}))
            self._settle()

    def _settle(self) -> None:
        """Bring tables to where they belong: up once they are whole, else down."""
        found = _manifest(self._stage / manifest.NAME)
        if found is None:
            if (self.path / manifest.NAME).is_file():
                shutil.rmtree(self._stage, ignore_errors=True)
            return
        up = found.shards is not None
        joined = self._stage / JOINED
        whole = joined if joined.is_dir() else self._stage
        source, target = (whole, self.path) if up else (self.path, self._stage)
        if not up:
            (self.path / manifest.NAME).unlink(missing_ok=True)
        for name in parts.TABLES:
            if (source / name).is_dir():
                os.rename(source / name, target / name)
        if up:
            for name in (TIMING, manifest.NAME):
                if (self._stage / name).is_file():
                    os.replace(self._stage / name, self.path / name)
            shutil.rmtree(self._stage)

    def _reopen(self, start: Mapping[str, Any], shards: Sequence[Shard]) -> None:
        for shard in shards:
            atomic.write_bytes(self._record(shard.number), msgspec.json.encode(shard))
        atomic.write_bytes(self._stage / manifest.NAME, manifest.written(start))
        self._settle()


def _manifest(path: Path) -> Manifest | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Manifest)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _counts(frame: pl.DataFrame) -> dict[str, int]:
    return dict(sorted(frame["relation"].value_counts().iter_rows()))


@contextmanager
def _full_disk(path: Path) -> Iterator[None]:
    """What the disk refuses in the middle of a build, as what to do about it."""
    try:
        yield
    except (OSError, LmkbcError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        if not isinstance(cause, OSError):
            raise
        raise LmkbcError(
            f"{path} cannot be written: {cause.strerror or cause}; what is finished of the build is kept, so make room "
            "and run the command again"
        ) from None
