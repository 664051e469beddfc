"""Where a knowledge base is written: a directory whose tables appear when they are whole, and not before.

Shards are written below `unfinished/`: each file under a temporary name, flushed, then renamed. A shard counts once its
record, written last, is there, and as long as its files are what the record says. When every shard is there, the tables
are written anew below `unfinished/joined/`, then the manifest that lists them. From then on tables and manifest are
only moved up. A finished base whose queries failed, or whose files are damaged, is opened again: what is sound of its
shards goes back below `unfinished/`. What a kill left between two moves, the next run settles. Whatever is not called
as the build's own files are stays where it is.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from lmkbc.build import layout, manifest, parts
from lmkbc.build.facts import Tables
from lmkbc.build.manifest import Manifest, Shard
from lmkbc.errors import InputError, LmkbcError
from lmkbc.files import atomic
from lmkbc.files.checksum import file_sha256
from lmkbc.files.lock import writing_alone
from lmkbc.progress import Report, silent

log = logging.getLogger(__name__)

LOCK = ".lock"
"""The lock of earlier versions, which may lie in a base still."""


class Directory:
    """A build's directory. path: as the user named it."""

    def __init__(self, path: Path) -> None:
        self.path, self._stage = path, path / layout.UNFINISHED

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other builds out. InputError where one is at work, or where nothing could be written."""
        with writing_alone(self.path):
            others = {entry.name for entry in self.path.iterdir()} - {LOCK} if self.path.is_dir() else set()
            if others and self._read() is None and not self._blank(others):
                raise InputError(
                    f"{self.path} holds files that are of no build, first {min(others)!r}: name a directory that is "
                    "new or empty"
                )
            with atomic.refusals(self.path):
                self.path.mkdir(parents=True, exist_ok=True)
            yield

    def _blank(self, others: set[str]) -> bool:
        """Whether nothing is there but what a build left that was killed before it began."""
        return others == {layout.UNFINISHED} and all(
            layout.TEMPORARY.fullmatch(path.name) for path in self._stage.iterdir()
        )

    def _read(self) -> Manifest | None:
        """The manifest that counts: the one that is not finished, else the finished one."""
        return manifest.read(self._stage / layout.MANIFEST) or manifest.read(self.path / layout.MANIFEST)

    def whole(self) -> dict[str, Any] | None:
        """The manifest of a build that has begun and lacks nothing; None where something is left to be done."""
        if (self._stage / layout.MANIFEST).is_file():
            return None
        return self._finished()

    def _finished(self) -> dict[str, Any]:
        made: dict[str, Any] = msgspec.json.decode((self.path / layout.MANIFEST).read_bytes())
        return made

    def begin(self, start: Mapping[str, Any], report: Report = silent) -> list[Shard]:
        """The shards that are written already, none of a build that lacks nothing. InputError for other inputs.

        Every file is read and compared with its SHA-256. A shard that lost something does not count.
        """
        with atomic.refusals(self.path):
            self._settle()
            found = self._read()
            if found is not None and found.run != start["run"]:
                if found.shards is None and not layout.records(self._stage):
                    found = None  # it wrote nothing yet, and gives way
                else:
                    state = "an unfinished" if found.shards is None else "a finished"
                    raise InputError(
                        f"{self.path} holds {state} build of other inputs, which differ in "
                        f"{manifest.differing(start['inputs'], found.inputs)}: give the same ones, or name a new "
                        "directory"
                    )
            if found is None:
                atomic.write_bytes(self._stage / layout.MANIFEST, manifest.written(start))
            elif found.shards is not None and not self._reopened(start, found, report):
                return []
            return self._sound_shards(start["run"], report)

    def _reopened(self, start: Mapping[str, Any], found: Manifest, report: Report) -> bool:
        """Take up a finished build again that lacks answers, or files; whether it does."""
        shards, joined = found.shards or (), not any(shard.outputs for shard in found.shards or ())
        if not any(shard.failed for shard in shards):
            lost = [*self._damaged(found.outputs, report)]
            if not lost:
                return False
            log.warning(
                "%s: %d of %d files are damaged or gone, first %s; what they held is asked again",
                *(self.path, len(lost), len(found.outputs), lost[0]),
            )
        made: Mapping[int, Mapping[str, str]] = {shard.number: shard.outputs for shard in shards}
        if joined:
            made = parts.parted(self.path, self._stage, found.outputs, shards, found.run)
        for shard in shards:
            if shard.number in made:
                self._record(msgspec.structs.replace(shard, outputs=made[shard.number]))
        atomic.write_bytes(self._stage / layout.MANIFEST, manifest.written(start))
        self._settle()
        return True

    def _damaged(self, outputs: Mapping[str, str], report: Report) -> Iterator[str]:
        """Yield the files of a finished base that are gone, or are not what was written."""
        for done, (name, sha256) in enumerate(outputs.items()):
            report("check (files)", done, len(outputs))
            path = self.path / name
            if not layout.PART.fullmatch(name) or not path.is_file() or file_sha256(path) != sha256:
                yield name
        report("check (files)", len(outputs), len(outputs))

    def _sound_shards(self, run: str, report: Report) -> list[Shard]:
        """The shards below `unfinished/` that are as they were written; what there is of others is removed."""
        records = layout.records(self._stage)
        sound = list[Shard]()
        for done, path in enumerate(records):
            report("check (shards)", done, len(records))
            if (shard := self._sound(path, run)) is None:
                path.unlink()
            else:
                sound.append(shard)
        report("check (shards)", len(records), len(records))
        if len(sound) < len(records):
            log.warning(
                "%s: %d of %d parts are damaged, and asked again",
                *(self._stage, len(records) - len(sound), len(records)),
            )
        listed = {name for shard in sound for name in shard.outputs}
        for name in layout.parts(self._stage):
            if name not in listed:
                (self._stage / name).unlink()
        return sound

    def _sound(self, path: Path, run: str) -> Shard | None:
        """Read the record of a shard; None where it, or a file that it lists, is not what was written."""
        try:
            shard = msgspec.json.decode(path.read_bytes(), type=Shard)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        tables = parts.tables(self._stage, shard.outputs)
        if tables is None or path != self._stage / layout.record(shard.number):
            return None
        names = {name for name, _ in parts.parts_of(shard.number, tables)}
        own = all((frame["run"] == run).all() for frame in tables)
        made = _counted(shard.number, shard.depth, tables, shard.outputs)
        return shard if own and names == shard.outputs.keys() and made == shard else None

    def write(self, number: int, tables: Tables, depth: int, run: str) -> Shard:
        """Write a shard. LmkbcError where the disk refuses, which leaves the shards before it as they are."""
        with _full_disk(self.path):
            self.drop(number)
            files = parts.parts_of(number, tables)
            outputs = {name: parts.write(self._stage, name, frame, run) for name, frame in files}
            shard = _counted(number, depth, tables, outputs)
            self._record(shard)
            return shard

    def drop(self, number: int) -> None:
        """Remove what there is of a shard, its record first."""
        (self._stage / layout.record(number)).unlink(missing_ok=True)
        for name in layout.parts(self._stage, layout.part(number)):
            (self._stage / name).unlink()

    def _record(self, shard: Shard) -> None:
        atomic.write_bytes(self._stage / layout.record(shard.number), msgspec.json.encode(shard))

    def facts(self, shards: Sequence[Shard], relation: str, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Some columns of a relation's facts, shard by shard, while the build is not finished."""
        for shard in shards:
            if (name := f"{layout.partition(relation)}/{layout.part(shard.number)}") in shard.outputs:
                yield pl.read_parquet(self._stage / name, columns=list(columns), hive_partitioning=False)

    def finish(self, whole: Mapping[str, Any], timing: Mapping[str, Any]) -> dict[str, Any]:
        """Declare the tables whole, bring them to their place, and return the manifest that lists them.

        Where no query failed, so that no shard is written again, the parts are joined first. timing: what is another in
        every run, and stands beside the manifest.
        """
        with _full_disk(self.path):
            shards, joined = whole["shards"], self._stage / layout.JOINED
            outputs = {name: sha256 for shard in shards for name, sha256 in shard["outputs"].items()}
            layout.clear_tables(joined)
            if not whole["counts"]["failed"] and len(shards) > 1:
                outputs = parts.compacted(self._stage, joined, outputs, whole["run"])
                whole = {**whole, "shards": [{**shard, "outputs": {}} for shard in shards]}
            else:
                parts.copied(self._stage, joined, outputs)
            atomic.write_bytes(self._stage / layout.TIMING, msgspec.json.encode(timing))
            atomic.write_bytes(self._stage / layout.MANIFEST, manifest.written({**whole, "outputs": outputs}))
            self._settle()
            return self._finished()

    def _settle(self) -> None:
        """Bring tables to where they belong: up once they are whole, else down. No file but the build's is touched."""
        there = manifest.read(self._stage / layout.MANIFEST)
        if there is None:
            if (self.path / layout.MANIFEST).is_file():
                layout.clear(self._stage)
        elif there.shards is None:
            (self.path / layout.MANIFEST).unlink(missing_ok=True)
            for name in layout.parts(self.path):
                target = self._stage / name
                if target.exists():
                    (self.path / name).unlink()
                else:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    os.replace(self.path / name, target)
            layout.prune(self.path)
        else:
            for name in layout.TABLES:
                layout.move(self._stage / layout.JOINED / name, self.path / name)
            for name in (layout.TIMING, layout.MANIFEST):
                if (self._stage / name).is_file():
                    os.replace(self._stage / name, self.path / name)
            layout.clear(self._stage)
            if self._stage.is_dir():
                log.warning("%s holds files that are of no build: they are left there", self._stage)
        layout.remove_temporary(self._stage)


def _counted(number: int, depth: int, tables: Tables, outputs: Mapping[str, str]) -> Shard:
    """Return the record of a shard with these tables."""
    facts = tables.facts
    return Shard(
        number=number,
        depth=depth,
        queries=facts.select("subject_row", "relation").n_unique() + len(tables.nothing) + len(tables.missing),
        facts=_counts(facts),
        linked=_counts(facts.filter(pl.col("object_id").is_not_null())),
        nothing=_counts(tables.nothing),
        failed=_counts(tables.missing),
        outputs=outputs,
    )


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
