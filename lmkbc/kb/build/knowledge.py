"""Reader of a finished knowledge base: fact by fact or part by part. The hash of every file is checked."""

from __future__ import annotations

import heapq
import io
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import msgspec
import polars as pl

from lmkbc.errors import InputError, check_known
from lmkbc.files import checksum
from lmkbc.files.reader import whole
from lmkbc.kb.build import manifest
from lmkbc.kb.build.facts import SCHEMA_VERSION
from lmkbc.kb.build.manifest import MANIFEST, TIMING, UNFINISHED, About
from lmkbc.kb.build.parts import PART, partition
from lmkbc.progress import Report, silent

_DAY = re.compile(r"\d{4}-\d\d-\d\dT")
MEND = "build into a new directory; answers of models are in the store"
REPORTED = 1 << 10
"""Facts between two reports of progress. A report takes longer than reading a fact."""
ABOUT_SUBJECT = ("subject_row", "subject", "subject_id")
COLUMNS = (*ABOUT_SUBJECT, "object", "object_id", "literal", "confidence", "sources", "model", "stated_by")
ANSWER = (*ABOUT_SUBJECT, "relation", "reason")
"""Columns that are read for queries without a fact."""


class FactRow(NamedTuple):
    """A row of facts, and its relation's description.

    literal: plain digits of a number, or a date as `PartialDate` writes it; None for other objects.
    stated_by: splits whose labelled rows state the fact; None if no row does.
    """

    subject_row: int
    subject: str
    subject_id: str | None
    object: str
    object_id: str | None
    literal: str | None
    confidence: float
    sources: list[str]
    model: str
    relation: str
    about: About
    stated_by: list[str] | None = None


class _Timing(msgspec.Struct):
    """Field that is read from the file beside the manifest."""

    finished: str = ""


class Knowledge:
    """The facts of a build's directory. least: least confidence; facts below it are left out, and counted in `unsure`.

    chosen: relations to read, all if empty. limit: read only facts of the first `limit` subjects. report: callback for
    progress in facts. InputError for a directory without a finished build, a damaged one, or a missing relation.
    """

    def __init__(
        self,
        path: Path,
        least: float = 0.0,
        *,
        chosen: Sequence[str] = (),
        limit: int | None = None,
        report: Report = silent,
    ) -> None:
        self.path, self._least, self._limit, self._report = path, least, limit, report
        found = manifest.read(path / MANIFEST)
        if found is None:
            undone = (path / UNFINISHED / MANIFEST).is_file()
            why = (
                "its build is not finished: run 'lmkbc build' again" if undone else "give a directory of 'lmkbc build'"
            )
            raise InputError(f"{path} holds no {MANIFEST}; {why}")
        if found.schema != SCHEMA_VERSION:
            raise InputError(
                f"{path} is of schema {found.schema}, this program reads {SCHEMA_VERSION}: build into a new directory"
            )
        if found.shards is None:
            raise InputError(f"{path} is a build that is not finished: run 'lmkbc build' again")
        for name in chosen:
            check_known(name, found.relations, f"{path} has no facts of {name!r}")
        self.relations = {name: about for name, about in found.relations.items() if not chosen or name in chosen}
        self.run, self.inputs, self.shards = found.run, found.inputs, found.shards
        self.is_whole = not chosen and limit is None
        self._outputs, self._done, self.unsure = found.outputs, 0, 0
        self._by_value = "by" in (found.inputs.get("grow") or {})
        self._whole = sum(shard.facts.get(name, 0) for shard in found.shards for name in self.relations)

    @property
    def rows(self) -> int:
        """Return the number of facts and of queries without a fact for these relations. The limit is ignored."""
        tables = (table for shard in self.shards for table in (shard.facts, shard.nothing, shard.failed))
        return sum(table.get(name, 0) for table in tables for name in self.relations)

    @property
    def date(self) -> str:
        """Return the day on which the build was finished, as in 2026-11-22; "" if unknown."""
        try:
            finished = msgspec.json.decode(whole(self.path / TIMING), type=_Timing).finished
        except (InputError, msgspec.MsgspecError, UnicodeDecodeError):
            return ""
        return finished[:10] if _DAY.match(finished) else ""

    @property
    def checksum(self) -> str:
        """Return a SHA-256 over the manifest's hashes of fact files. Two bases with the same facts share it."""
        facts = [f"{name} {self._outputs[name]}\n" for name in sorted(self._outputs) if name.startswith("facts/")]
        return checksum.sha256("".join(facts).encode())

    def facts(self) -> Iterator[FactRow]:
        """Yield all facts, relation by relation, each in the stored order."""
        self._done = 0
        for relation in self.relations:
            yield from self.of(relation)

    def of(self, relation: str, *, by_subject: bool = False) -> Iterator[FactRow]:
        """Yield the facts of a relation in the stored order. Only one part is in memory at a time.

        by_subject: whether to sort them if they are not stored in the order of subjects. Then all their columns are in
        memory.
        """
        about, parts = self.relations[relation], self.parts(relation)
        if by_subject and self._by_value:
            held = [*parts]
            parts = iter([pl.concat(held).sort("subject_row", maintain_order=True)] if held else ())
        for part in parts:
            for values in part.iter_rows():
                if self._done % REPORTED == 0:
                    self._report("read (facts)", self._done, self._whole)
                self._done += 1
                yield FactRow._make((*values[:-1], relation, about, values[-1]))

    def parts(self, relation: str, columns: Sequence[str] = COLUMNS) -> Iterator[pl.DataFrame]:
        """Yield the facts of a relation as data frames, in the order of subjects."""
        for frame in self._read(partition(relation), columns):
            kept = frame.filter(pl.col("confidence") >= self._least) if self._least > 0 else frame
            self.unsure += len(frame) - len(kept)
            kept = self._limited(kept)
            self._done += len(frame) - len(kept)
            yield kept

    def answers(self, table: str) -> Iterator[pl.DataFrame]:
        """Yield the queries without a fact. table: "nothing", or "missing" for queries without an answer of a model."""
        for frame in self._read(table, ANSWER):
            yield self._limited(frame.filter(pl.col("relation").is_in([*self.relations])))

    def _limited(self, frame: pl.DataFrame) -> pl.DataFrame:
        return frame if self._limit is None else frame.filter(pl.col("subject_row") < self._limit)

    def by_subject(self) -> Iterator[list[FactRow]]:
        """Yield the facts of each subject, of all relations, in the order of subjects.

        Facts are stored in this order, unless the base grew by value. In that case, all columns are loaded and sorted.
        """
        row = attrgetter("subject_row")
        self._done = 0
        ordered = heapq.merge(*(self.of(relation, by_subject=True) for relation in self.relations), key=row)
        for _, facts in groupby(ordered, key=row):
            yield list(facts)

    def _read(self, folder: str, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the parts of a directory. InputError for a damaged part."""
        for name in sorted(filter(PART.fullmatch, self._outputs)):
            if name.rpartition("/")[0] == folder:
                yield self._part(self.path / name, self._outputs[name], columns)

    def _part(self, path: Path, sha256: str, columns: Sequence[str]) -> pl.DataFrame:
        try:
            content = whole(path)
        except InputError as error:
            raise InputError(f"{error}; {MEND}") from None
        if checksum.sha256(content) != sha256:
            raise InputError(f"{path} is damaged, since it is not what the manifest says; {MEND}")
        return pl.read_parquet(io.BytesIO(content), columns=[*columns], hive_partitioning=False).select(columns)
