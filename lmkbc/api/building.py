"""Function `build`: from a file of subjects to a knowledge base with its tables."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import msgspec
import polars as pl

from lmkbc.api.data_frames import shown
from lmkbc.api.keywords import keywords, opened
from lmkbc.errors import InputError, OptionError
from lmkbc.files.arrays import key
from lmkbc.kb.build.engine import REACHED, Engine
from lmkbc.kb.build.entities import ENTITIES
from lmkbc.kb.build.facts import FACTS, LEAST, SCHEMAS
from lmkbc.kb.build.frontier import LEAST_MEAN, Frontier
from lmkbc.kb.build.growth import Bounds, Growth
from lmkbc.kb.build.manifest import inputs_of, started
from lmkbc.kb.build.settle import REMOVED
from lmkbc.kb.build.shards import Build, BuildPlan, chosen
from lmkbc.kb.build.staged import Directory
from lmkbc.kb.build.subjects import Classes, SubjectFile
from lmkbc.link.index import AliasIndex
from lmkbc.progress import Report, silent
from lmkbc.recipe import Recipe
from lmkbc.run import directory as run_directory
from lmkbc.run.options import RunOptions
from lmkbc.run.run import Run
from lmkbc.run.subset import names_of
from lmkbc.select.tuned_rules import selector_for

if TYPE_CHECKING:
    from lmkbc.run.estimate import Estimate

log = logging.getLogger(__name__)
ORDERS = ("level", "value")
"""Orders in which a base grows; the first is the default."""


@dataclass(frozen=True)
class KnowledgeBase:
    """Facts about many subjects, with confidences. manifest: inputs, outputs and counts."""

    directory: Path
    manifest: Mapping[str, Any] = field(repr=False, compare=False)

    @property
    def facts(self) -> pl.LazyFrame:
        """Return the facts, one row per object. Files are read when the frame is collected."""
        return self._scanned("facts", FACTS)

    @property
    def nothing(self) -> pl.LazyFrame:
        """Return the queries without an object, and the reason."""
        return self._scanned("nothing", SCHEMAS["nothing"])

    @property
    def missing(self) -> pl.LazyFrame:
        """Return the queries that no model answered. These are not empty answers: the same build asks them again."""
        return self._scanned("missing", SCHEMAS["missing"])

    @property
    def removed(self) -> pl.LazyFrame:
        """Return the facts that repeat another fact or contradict a surer one, and the fact that stays."""
        return self._scanned("removed", REMOVED)

    @property
    def entities(self) -> pl.LazyFrame:
        """Return the entities in facts, each once, with names and the class for which most facts vote."""
        return self._scanned("entities", ENTITIES)

    @property
    def counts(self) -> Mapping[str, int]:
        """Return the numbers of subjects, queries, facts, linked facts, queries with nothing, and failed queries.

        stated_by_labels: number of facts that labelled rows state.
        """
        counts: Mapping[str, int] = self.manifest["counts"]
        return counts

    @property
    def failed(self) -> int:
        """Return the number of missing queries."""
        return self.counts["failed"]

    @property
    def unsure(self) -> list[str]:
        """Return the answered relations without a written fact."""
        counts = self.manifest["of_relations"]
        return [name for name, count in counts.items() if count["nothing"] and not count["facts"]]

    @property
    def limit(self) -> str:
        """Return the limit (cost or tokens), if it is the only reason for missing queries; else ""."""
        reasons = self.missing.select(pl.col("reason").unique()).collect()["reason"].sort()
        return reasons[0] if len(reasons) and not {*reasons} - {*REACHED.values()} else ""

    def _scanned(self, table: str, schema: Mapping[str, Any]) -> pl.LazyFrame:
        parts = [self.directory / name for name in self.manifest["outputs"] if name.startswith(f"{table}/")]
        if not parts:  # this table has no rows
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
    """Build a knowledge base: facts about all subjects as Parquet, with confidences. A build that was killed resumes.

    subjects: CSV, JSONL or Parquet file with a name and, if known, id (QID) and class.
    out: directory: new, empty, or with the build to resume.
    relation: relations to ask about, default all for the subject's class. Named ones are also asked about subjects of
    unknown class.
    limit: number of subjects to use, from the first.
    grow: levels of growth, in which entities in facts become subjects.
    budget: most subjects in all.
    novelty: least share of new entities among a level's mentions; growth ends below it.
    grow_by: "level" for breadth first; "value" for the queries first that promise most right facts per token. With
    "value", a relation ends when its newest facts fall below `precision`, or below 0.5 without one.
    any_thresholds, untuned, precision, progress: as in `lmkbc.predict`.
    least: least confidence of a fact. Default: what `precision` keeps, else 0.7 if confidences are probabilities.
    engine: workers that answer queries, default this process.

    InputError for wrong input, before any model is asked. Failed queries are counted, and the same build asks them
    again.
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
    growth = Growth(bounds, plan.classes, by_own, frontier)
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
    """Estimate a build: how much it would ask, and how much of that is stored already. Arguments as in `build`."""
    from lmkbc.run.estimate import estimate  # here, since it loads the modules of models

    run, recipe, _, plan = _planned(subjects, relation, limit, options)
    timings = run_directory.timings(run.edition.name, recipe.name, Path(out))
    return estimate(run, recipe, (ask.query for ask in plan.asks()), timings, progress)


def _planned(
    subjects: Path | str, relation: str | Sequence[str] | None, limit: int | None, options: RunOptions
) -> _Planned:
    """Return the queries of a build after a check of the whole file. InputError if there are none."""
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
