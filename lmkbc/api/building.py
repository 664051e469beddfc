"""From a file of subjects to a knowledge base, and its tables."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import msgspec
import polars as pl

from lmkbc.api.frames import shown
from lmkbc.api.options import keywords, opened
from lmkbc.build.build import Build, BuildPlan, chosen
from lmkbc.build.classes import Classes
from lmkbc.build.directory import Directory
from lmkbc.build.engine import REACHED, Engine
from lmkbc.build.entities import ENTITIES
from lmkbc.build.facts import FACTS, LEAST, SCHEMAS
from lmkbc.build.frontier import LEAST_MEAN, Frontier
from lmkbc.build.growth import Bounds, Growth
from lmkbc.build.manifest import inputs_of, started
from lmkbc.build.settle import REMOVED
from lmkbc.build.subjects import SubjectFile
from lmkbc.errors import InputError, OptionError
from lmkbc.files.arrays import key
from lmkbc.link.index import AliasIndex
from lmkbc.progress import Report, silent
from lmkbc.recipe import Recipe
from lmkbc.run import directory as run_directory
from lmkbc.run.base import Run
from lmkbc.run.options import RunOptions
from lmkbc.run.subset import names_of
from lmkbc.selection import selector_for

if TYPE_CHECKING:
    from lmkbc.run.estimate import Estimate

log = logging.getLogger(__name__)
ORDERS = ("level", "value")
"""Orders in which a base grows, the default first."""


@dataclass(frozen=True)
class KnowledgeBase:
    """Facts of many subjects, with confidences. manifest: what went in and came out, with the counts."""

    directory: Path
    manifest: Mapping[str, Any] = field(repr=False, compare=False)

    @property
    def facts(self) -> pl.LazyFrame:
        """Return what is kept: a row per object, read when it is collected."""
        return self._scanned("facts", FACTS)

    @property
    def nothing(self) -> pl.LazyFrame:
        """Queries without an object, and why."""
        return self._scanned("nothing", SCHEMAS["nothing"])

    @property
    def missing(self) -> pl.LazyFrame:
        """Queries that no model answered, which is no empty answer: the same build asks them again."""
        return self._scanned("missing", SCHEMAS["missing"])

    @property
    def removed(self) -> pl.LazyFrame:
        """Facts that repeat another one, or contradict a surer one, and which one stays."""
        return self._scanned("removed", REMOVED)

    @property
    def entities(self) -> pl.LazyFrame:
        """What the facts name, each thing once, with its names and the class that its facts vote for."""
        return self._scanned("entities", ENTITIES)

    @property
    def counts(self) -> Mapping[str, int]:
        """Return how many subjects, queries, facts, linked facts, queries with nothing, and failed ones."""
        counts: Mapping[str, int] = self.manifest["counts"]
        return counts

    @property
    def failed(self) -> int:
        """Return how many queries are missing."""
        return self.counts["failed"]

    @property
    def unsure(self) -> list[str]:
        """Return the relations that were answered, and of which no fact is written."""
        counts = self.manifest["of_relations"]
        return [name for name, count in counts.items() if count["nothing"] and not count["facts"]]

    @property
    def limit(self) -> str:
        """Return the limit of cost or tokens for which alone queries are missing; "" where they failed, or none is."""
        reasons = self.missing.select(pl.col("reason").unique()).collect()["reason"].sort()
        return reasons[0] if len(reasons) and not {*reasons} - {*REACHED.values()} else ""

    def _scanned(self, table: str, schema: Mapping[str, Any]) -> pl.LazyFrame:
        parts = [self.directory / name for name in self.manifest["outputs"] if name.startswith(f"{table}/")]
        if not parts:  # no query came to that
            return pl.LazyFrame(schema=schema)
        folders = {"relation": pl.String()} if table == "facts" else None
        frame = pl.scan_parquet(sorted(parts), glob=False, hive_partitioning=bool(folders), hive_schema=folders)
        return frame.select(*schema)

    def _repr_html_(self) -> str:
        line = ", ".join(f"{count} {name}" for name, count in self.counts.items())
        return shown("A knowledge base", f"{self.directory}: {line}", self.facts.head(10).collect())


class _Planned(NamedTuple):
    run: Run
    recipe: Recipe
    subjects: SubjectFile
    plan: BuildPlan


@keywords(RunOptions)
def build(
    subjects: Path | str,
    out: Path | str,
    *,
    relation: str | Sequence[str] | None = None,
    limit: int | None = None,
    grow: int = 0,
    budget: int | None = None,
    novelty: float = 0.0,
    grow_by: str = "level",
    any_thresholds: bool = False,
    untuned: bool = False,
    precision: float | None = None,
    least: float | None = None,
    engine: AbstractContextManager[Engine | None] | None = None,
    progress: Report = silent,
    **options: Unpack[RunOptions],
) -> KnowledgeBase:
    """Build a knowledge base: facts of all subjects as Parquet, with confidences. A build that was killed goes on.

    subjects: CSV, JSONL or Parquet with a name and, where known, id (QID) and class. out: its directory, new, empty, or
    the build to go on with. relation: of these relations alone, which subjects of unknown class are asked too; limit:
    of the first so many subjects. grow: ask about what the facts name in turn, so many levels deep; budget: of at most
    so many subjects in all; novelty: until a smaller share of a level's entities is new; grow_by: "level" for breadth
    first, "value" for the subjects first that promise the most right facts per token, and each relation until its
    newest facts fall below `precision`, or 0.5 without one. any_thresholds, untuned, precision, progress: as of
    `lmkbc.predict`. least: leave out facts of less confidence; else of less than `precision` promises, or of less than
    0.7 where confidences are probabilities. engine: what answers, if not this process. InputError for what is wrong,
    before anything is asked of a model. Queries that failed are counted as such, and asked by the same build again.
    """
    if least is not None and not 0 <= least <= 1:
        raise OptionError("least", f"is {least}: give a confidence from 0 to 1")
    if grow_by not in ORDERS:
        raise OptionError("grow_by", f"is {grow_by!r}: give {' or '.join(ORDERS)}")
    run, recipe, found, plan = _planned(subjects, relation, limit, options)
    bounds = Bounds(depth=grow, budget=budget, novelty=novelty)
    by_own = {one.name: one for one in plan.relations.values()}
    by_value = {"by": grow_by} if grow and grow_by != ORDERS[0] else {}
    names = {name: one.name for name, one in plan.relations.items()}
    frontier = Frontier(plan.classes, names, grow, precision or LEAST_MEAN) if by_value else None
    index = AliasIndex(run.index) if run.index else None
    growth = Growth(bounds, plan.classes, by_own, index, frontier)
    selector, provenance = selector_for(
        run, recipe, any_thresholds=any_thresholds, untuned=untuned, precision=precision
    )
    about = {
        **inputs_of(run, recipe, provenance, plan.relations),
        "limit": limit,
        "least": least,
        "floor": LEAST if least is None and precision is None else None,
        "classes": key([msgspec.to_builtins(run.workspace.classes), bool(relation)]),
        "grow": asdict(bounds) | by_value if grow else None,
        "subjects": {"sha256": found.sha256, **found.counts},
    }
    if least is None and precision is not None:
        least = 0.0
    directory = Directory(Path(out))
    begun = started(about, plan.relations)
    with directory.held(), engine or nullcontext() as answering:
        work = Build(run, recipe, selector, begun, engine=answering, least=least, index=index)
        made = work.into(directory, plan, growth, progress)
    return KnowledgeBase(directory.path, made)


@keywords(RunOptions)
def estimate_build(
    subjects: Path | str,
    out: Path | str,
    *,
    relation: str | Sequence[str] | None = None,
    limit: int | None = None,
    progress: Report = silent,
    **options: Unpack[RunOptions],
) -> Estimate:
    """Estimate a build: what it would ask of its subjects, and what of that is stored already. As `build`."""
    from lmkbc.run.estimate import estimate  # which loads what asks models

    run, recipe, _, plan = _planned(subjects, relation, limit, options)
    timings = run_directory.timings(run.edition.name, recipe.name, Path(out))
    return estimate(run, recipe, (ask.query for ask in plan.asks()), timings, progress)


def _planned(
    subjects: Path | str, relation: str | Sequence[str] | None, limit: int | None, options: RunOptions
) -> _Planned:
    """Return what is asked of whom, once the whole file is checked. InputError where that is nothing."""
    run, recipe = opened(options)
    relations = chosen(run, names_of(relation))
    found = SubjectFile(Path(subjects), limit)
    space = run.workspace
    classes = Classes(relations, space.relations.values(), space.classes, named=bool(relation))
    plan = BuildPlan(found, relations, classes)
    if not plan.total:
        raise InputError(
            f"{subjects}: no subject is of a class that the relations ask about; give a column 'class' with Wikidata's "
            "classes, by name or QID, or name relations with --relation"
        )
    for remark in (*found.remarks, *plan.remarks()):
        log.info("%s", remark)
    return _Planned(run, recipe, found, plan)
