"""A build: subjects times relations, in shards of several blocks. Shards that are already written are not repeated."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import polars as pl

from lmkbc.errors import did_you_mean
from lmkbc.kb.base.manifest import Shard, finished
from lmkbc.kb.builder.addition import Earlier
from lmkbc.kb.builder.base_directory import Directory
from lmkbc.kb.builder.engine import UNASKED, Answers, Engine, ShardPart, ThisProcess, Work
from lmkbc.kb.builder.facts import Ask, Maker, Tables, among
from lmkbc.kb.builder.growth import Growth
from lmkbc.kb.builder.labels import labels_of
from lmkbc.kb.builder.settle import NamedEntities, Settlement
from lmkbc.kb.builder.subjects import Classes, Subjects
from lmkbc.link.index import AliasIndex
from lmkbc.plan import Plan
from lmkbc.progress import Report, silent, tracked
from lmkbc.relation import Relation
from lmkbc.run.pipeline import BLOCK
from lmkbc.select.selector import PerRelation
from lmkbc.session.run import Run
from lmkbc.session.subset import Subset
from lmkbc.types import Query

SHARD = BLOCK
"""Queries of a shard: what is in memory before it is written, and what a kill loses. Parts are joined at the end."""
PORTIONS = 4
"""Least number of blocks per worker. Blocks are smaller if there are too few queries for that."""


@dataclass(frozen=True, slots=True)
class BuildQueries:
    """Queries of a build: for each subject in turn, every relation of its class.

    So each block has a similar share of every relation, and similar work. relations: relations by their names in
    queries. listed: queries that replace these if a base grows by value.
    """

    subjects: Subjects
    relations: Mapping[str, Relation]
    classes: Classes
    listed: Sequence[Ask] | None = None

    def asks(self) -> Iterator[Ask]:
        """Yield the queries."""
        if self.listed is not None:
            yield from self.listed
            return
        asked = {class_: self.classes.relations(class_) for class_ in self.subjects.classes}
        for subject in self.subjects:
            for name in asked[subject.class_]:
                yield Ask(subject.row, Query(subject.name, name, subject.id))

    @property
    def asked(self) -> set[str]:
        """Return the relations of the subjects' classes, by their names in queries."""
        return {name for class_ in self.subjects.classes for name in self.classes.relations(class_)}

    @property
    def total(self) -> int:
        """Return the number of queries."""
        if self.listed is not None:
            return len(self.listed)
        return sum(count * len(self.classes.relations(name)) for name, count in self.subjects.classes.items())

    def remarks(self) -> Iterator[str]:
        """Yield remarks for the user about classes that are unknown or have no relation."""
        counts, asked = self.subjects.classes, self.asked
        recognised = {name for name in counts if self.classes.qid(name) is not None}
        idle = [name for name in counts if name in recognised and not self.classes.relations(name)]
        unknown = [name for name in counts if name and name not in recognised]
        yield from self.classes.doubles()
        if unasked := [name for name in self.relations if name not in asked]:
            first = self.relations[unasked[0]]
            some = f"{len(unasked)} of {len(self.relations)} relations, first {unasked[0]!r}"
            about = (first.subject_class or first.subject_type).noun
            yield f"asked of no subject, since none is of their class: {some}, which is about {about!r}"
        if idle:
            yield f"asked nothing, since no relation is of their class: {self._some(idle)}, first {idle[0]!r}"
        what, advice = "asked nothing", "; give a class by name or QID, or name relations with --relation"
        if self.classes.relations(""):
            what, advice = "asked all relations that are named", ""
        if unknown:
            hint = did_you_mean(unknown[0], self.classes.nouns)
            where = f"{self._some(unknown)}, first {unknown[0]!r} ({hint})"
            yield f"{what}, since nothing is known of their class: {where}{advice}"
        if counts[""] and advice:
            yield f"{what}, since they have no class: {self._some([''])}{advice}"

    def _some(self, classes: Sequence[str]) -> str:
        counts = self.subjects.classes
        return f"{sum(counts[name] for name in classes)} of {counts.total()} subjects"


def chosen(run: Run, names: Sequence[str]) -> dict[str, Relation]:
    """Return the named relations of an edition by its spelling; all if no name is given. InputError for others."""
    subset = Subset.of(run.edition, names, None)
    return {name: relation for name, relation in run.relations.items() if subset.holds(name)}


@dataclass(frozen=True, slots=True)
class Build:
    """Build of a knowledge base in a directory.

    start: manifest at the beginning. engine: workers that answer blocks, None for this process. least: least confidence
    of a fact, None for that of `facts.floor`. index: index with names of entities. earlier: base to which this build
    adds. usage: tokens and cost of the calls of each level and worker.
    """

    plan: Plan
    selector: PerRelation
    start: Mapping[str, Any]
    engine: Engine | None = None
    least: float | None = None
    index: AliasIndex | None = None
    earlier: Earlier | None = None
    usage: list[Mapping[str, Any]] = field(default_factory=list)

    def into(self, directory: Directory, queries: BuildQueries, growth: Growth, report: Report) -> Mapping[str, Any]:
        """Answer what is not yet written, write it, and finish. Return the manifest; also if nothing is left to do.

        If the disk refuses to write, the build can be resumed.
        """
        begun = time.monotonic()
        onto = None if self.earlier is None else self.earlier.manifest
        written = {shard.number: shard for shard in directory.begin(self.start, report, onto=onto)}
        if (there := directory.whole()) is not None:
            return there
        given, names = queries.subjects.frame, [relation.name for relation in queries.relations.values()]
        if self.earlier is not None:
            for number, asks, kept in self.earlier.kept(queries.asks(), queries.relations, SHARD, written):
                lacking = Answers.lacking(asks, UNASKED).tables(self._maker(queries))
                written[number] = directory.write(number, kept.completed(lacking, names), 0, self.start["run"])
        shards = list[Shard]()
        while True:
            made = self._level(directory, queries, len(growth), len(shards), written, report)
            shards += made
            if any(written.get(shard.number) != shard for shard in made):
                written = {}  # later levels were derived from facts that changed
            grown = growth.next(queries.subjects, made, directory)
            if grown is None:
                break
            queries = replace(queries, listed=grown) if isinstance(grown, list) else replace(queries, subjects=grown)
        subjects = growth.subjects or queries.subjects.classes.total()
        relations = {relation.name: relation for relation in queries.relations.values()}
        settlement = settlement_of(directory, shards, relations, queries.classes, self.index, report, len(given))
        settlement.label(labels_of(settlement.entities.ids(), self.plan.run, self.index))
        shards = [directory.settled(shard, settlement) for shard in shards]
        more = {"removed": settlement.counts(), **growth.summary()}
        whole = finished(self.start, subjects, shards, more)
        seconds = round(time.monotonic() - begun, 3)
        finish = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        timing = {"run": self.start["run"], "seconds": seconds, "finished": finish}
        timing |= {"usage": [used for used in self.usage if used]}
        if self.earlier is not None:
            timing |= {"earlier": self.earlier.timings(self.start["run"])}
        return directory.finish(whole, timing, settlement, given)

    def _level(
        self,
        directory: Directory,
        queries: BuildQueries,
        depth: int,
        first: int,
        written: Mapping[int, Shard],
        report: Report,
    ) -> list[Shard]:
        """Return the shards of a level. Shards that are missing or lack answers are answered and written first.

        Only the missing queries of a shard are asked, unless a rule reads the candidates of the others. first: number
        of the level's first shard.
        """
        sizes = [min(SHARD, queries.total - start) for start in range(0, queries.total, SHARD)]
        there = {number: written[first + number] for number in range(len(sizes)) if first + number in written}
        made = {n: shard for n, shard in there.items() if (shard.depth, shard.queries) == (depth, sizes[n])}
        todo = {n: size for n, size in enumerate(sizes) if n not in made or made[n].failed}
        names = [relation.name for relation in queries.relations.values()]
        held = {n for n in todo if n in made and not self.selector.reads_others}
        counts = {n: sum(made[n].failed.values()) if n in held else size for n, size in todo.items()}

        def asks() -> Iterator[Sequence[Ask]]:
            every = _of_shards(queries.asks(), [*todo], SHARD)
            for number, size in todo.items():
                some = [*islice(every, size)]
                yield (
                    among(some, directory.tables(first + number).missing, queries.relations) if number in held else some
                )

        for number, tables in self._answered(queries, counts, asks(), report, is_rest=bool(held)) if todo else ():
            own = directory.tables(first + number).completed(tables, names) if number in held else tables
            made[number] = directory.write(first + number, own, depth, self.start["run"])
        return [made[number] for number in range(len(sizes))]

    def _maker(self, queries: BuildQueries) -> Maker:
        run = self.plan.run
        more = run.statements, run.documents
        return Maker(self.selector, queries.relations, self.start["run"], self.least, *more)

    def _answered(
        self,
        queries: BuildQueries,
        todo: Mapping[int, int],
        asks: Iterator[Sequence[Ask]],
        report: Report,
        *,
        is_rest: bool,
    ) -> Iterator[tuple[int, Tables]]:
        """Yield (shard, tables) for some shards, each when all its blocks are answered.

        todo: shard -> number of queries to ask. asks: the queries of each of these shards. is_rest: as in
        `ThisProcess`.
        """
        total, done = sum(todo.values()), 0
        engine = self.engine or ThisProcess(total, report, is_rest=is_rest)
        size = min(BLOCK, -(-total // (PORTIONS * engine.workers or 1)))
        if self.selector.reads_others:
            size = SHARD  # a pair's two facts must be in one block, with any number of workers
        work = Work(self.plan, self._maker(queries))

        def parts() -> Iterator[ShardPart]:
            for number, some in zip(todo, asks, strict=True):
                for start in range(0, len(some), size):
                    yield ShardPart(number, start, some[start : start + size])

        came: dict[int, dict[int, Tables]] = {number: {} for number in todo}
        progress = report if self.engine or total > size else silent  # a single block reports its own steps
        progress("build (queries)", done, total)
        for part, tables in engine.tables(work, parts()):
            done += min(size, todo[part.shard] - part.start)
            progress("build (queries)", done, total)
            blocks = came[part.shard]
            blocks[part.start] = tables
            if len(blocks) == -(-todo[part.shard] // size):
                yield part.shard, Tables.together([blocks[start] for start in sorted(blocks)])
                del came[part.shard]
        self.usage.extend(engine.usage)


def _of_shards(asks: Iterator[Ask], todo: Sequence[int], size: int) -> Iterator[Ask]:
    """Yield the queries of some shards. todo: numbers of shards, ascending."""
    at = 0
    for number in todo:
        yield from islice(asks, (number - at) * size, (number - at + 1) * size)
        at = number + 1


def settlement_of(
    directory: Directory,
    shards: Sequence[Shard],
    relations: Mapping[str, Relation],
    classes: Classes,
    index: AliasIndex | None = None,
    report: Report = silent,
    listed: int = 0,
) -> Settlement:
    """Return the facts that are to be removed from all shards, and the entities that the facts name.

    relations: relations by their names in facts. index: index with names of entities. listed: number of subjects that
    the user listed.
    """
    numbers = [shard.number for shard in shards]

    def blocks(step: str) -> Iterator[tuple[int, pl.DataFrame]]:
        """Yield each shard's number and facts, sorted by relation as they are in a base that is read again."""
        for number in tracked(numbers, step, report):
            yield number, directory.tables(number).facts.sort("relation", maintain_order=True)

    found = (facts for _, facts in blocks("find entities (shards)"))
    return Settlement(blocks, relations, NamedEntities(found, relations, classes, index, listed))
