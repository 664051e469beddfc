"""A build: subjects times relations, in shards of some blocks, of which those that are written are not asked again."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from lmkbc.build.blocks import BLOCK, proposing
from lmkbc.build.classes import Classes
from lmkbc.build.directory import Directory
from lmkbc.build.engine import Ask, Engine, Part, Work, summed
from lmkbc.build.facts import Maker, Stated, Tables
from lmkbc.build.manifest import Shard, finished
from lmkbc.build.subjects import Subjects
from lmkbc.errors import InputError, did_you_mean
from lmkbc.progress import Report
from lmkbc.recipe import Recipe
from lmkbc.relation import Relation
from lmkbc.run import Run
from lmkbc.select.rule import PerRelation
from lmkbc.types import CandidateSet, Query

SHARD = 8 * BLOCK
"""Queries of a shard: files large enough to be read fast, small enough that a kill costs little."""
PORTIONS = 4
"""Blocks that each worker has at least, where there are so few queries that blocks are small for it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked: every relation of every subject of a class that has it, one relation after the other.

    relations: by the names that queries use.
    """

    subjects: Subjects
    relations: Mapping[str, Relation]
    classes: Classes

    def asks(self) -> Iterator[Ask]:
        """The queries, streamed."""
        asked = {class_: frozenset(self.classes.relations(class_)) for class_ in self.subjects.classes}
        for name in self.relations:
            if any(name in names for names in asked.values()):
                yield from (
                    Ask(subject.row, Query(subject.name, name, subject.id))
                    for subject in self.subjects
                    if name in asked[subject.class_]
                )

    @property
    def total(self) -> int:
        """How many queries there are."""
        return sum(count * len(self.classes.relations(name)) for name, count in self.subjects.classes.items())

    def remarks(self) -> Iterator[str]:
        """What a person should know of the subjects and their classes."""
        yield from self.subjects.remarks
        strange = {name: n for name, n in self.subjects.classes.items() if name and self.classes.qid(name) is None}
        if strange:
            yield (
                f"{sum(strange.values())} subjects are asked every relation, since nothing is known of their classes, "
                f"first {next(iter(strange))!r}"
            )
        if idle := sum(n for name, n in self.subjects.classes.items() if not self.classes.relations(name)):
            yield f"{idle} subjects are asked nothing, since no relation is of their classes"


def chosen(run: Run, names: Sequence[str]) -> dict[str, Relation]:
    """The relations of an edition that are named, all where none is, by its spelling. InputError for a stranger."""
    every = run.workspace.relations
    own = {relation.name for relation in run.relations.values()}
    for name in names:
        if name not in every or every[name].name not in own:
            hint = did_you_mean(name, [*run.relations, *own])
            raise InputError(f"edition {run.edition.name} has no relation {name!r}: {hint}")
    wanted = {every[name].name for name in names} or own
    return {name: relation for name, relation in run.relations.items() if relation.name in wanted}


@dataclass(frozen=True, slots=True)
class Build:
    """One build of a directory. start: its manifest as it begins. engine: what answers, if not this process."""

    run: Run
    recipe: Recipe
    selector: PerRelation
    start: Mapping[str, Any]
    shard: int = SHARD
    engine: Engine | None = None

    def into(self, directory: Directory, plan: Plan, report: Report) -> Mapping[str, Any]:
        """Ask what is not yet written, write it, and finish. The manifest, of a finished build that lacks nothing too.

        LmkbcError where the disk refuses; the build can then go on.
        """
        begun = time.monotonic()
        written = {shard.number: shard for shard in directory.begin(self.start)}
        last = -(-plan.total // self.shard)
        todo = [n for n in range(last) if n not in written or written[n].failed]
        if todo:
            if self.recipe.pool.method == "background":  # which weighs all queries of a run against each other
                todo = [*range(last)]
            shards = self._shards if self.engine is None else self._elsewhere
            for shard in shards(directory, plan, todo, report):
                written[shard.number] = shard
        whole = finished(self.start, [written[n] for n in range(last)], {"subjects": plan.subjects.counts})
        directory.finish(whole, {"seconds": round(time.monotonic() - begun, 3), "finished": now()})
        return whole

    def _shards(self, directory: Directory, plan: Plan, todo: Sequence[int], report: Report) -> Iterator[Shard]:
        maker = self._maker(plan)
        asked: deque[int] = deque()
        sets = self._proposed(_of_shards(plan.asks(), todo, self.shard), asked, report, plan.total)
        for number in todo:
            size = min(self.shard, plan.total - number * self.shard)
            parts = []
            while size:
                block = [*islice(sets, min(size, BLOCK))]
                parts.append(maker.tables([asked.popleft() for _ in block], block))
                size -= len(block)
            yield directory.write(number, Tables.together(parts), 0, self.start["run"])

    def _elsewhere(self, directory: Directory, plan: Plan, todo: Sequence[int], report: Report) -> Iterator[Shard]:
        """The same by another engine, whose blocks come in any order; a shard is written when it has them all."""
        assert self.engine is not None
        sizes = {number: min(self.shard, plan.total - number * self.shard) for number in todo}
        size = min(BLOCK, max(1, -(-sum(sizes.values()) // (PORTIONS * self.engine.workers))))

        def parts() -> Iterator[Part]:
            asks = _of_shards(plan.asks(), todo, self.shard)
            for number in todo:
                for place in range(-(-sizes[number] // size)):
                    yield Part(number, place, [*islice(asks, min(size, sizes[number] - place * size))])

        whole: dict[int, dict[int, Tables]] = {number: {} for number in todo}
        done, work = 0, Work(self.run, self.recipe, self._maker(plan))
        report("build (queries)", done, sum(sizes.values()))
        for part, tables in self.engine.tables(work, parts()):
            whole[part.shard][part.place] = tables
            done += min(size, sizes[part.shard] - part.place * size)
            report("build (queries)", done, sum(sizes.values()))
            if len(whole[part.shard]) == -(-sizes[part.shard] // size):
                yield directory.write(part.shard, summed(whole.pop(part.shard)), 0, self.start["run"])

    def _maker(self, plan: Plan) -> Maker:
        stated = {name: Stated.of(relation) for name, relation in plan.relations.items()}
        return Maker(self.selector, stated, self.start["run"])

    def _proposed(self, asks: Iterable[Ask], asked: deque[int], report: Report, total: int) -> Iterator[CandidateSet]:
        """The pooled sets of the queries, whose places are noted as they go out."""

        def queries() -> Iterator[Query]:
            for ask in asks:
                asked.append(ask.row)
                yield ask.query

        for block in proposing(self.run, self.recipe, queries(), report, total):
            yield from block.sets


def now() -> str:
    """The date and time, in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _of_shards(asks: Iterator[Ask], todo: Sequence[int], size: int) -> Iterator[Ask]:
    """Those of the queries that belong to some shards, in ascending order."""
    at = 0
    for number in todo:
        yield from islice(asks, (number - at) * size, (number - at + 1) * size)
        at = number + 1
