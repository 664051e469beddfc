"""Function `build`: from a file of subjects to a knowledge base with its tables."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Unpack

import msgspec
import polars as pl
from msgspec import Meta

from lmkbc.commands.data_frames import shown
from lmkbc.commands.keywords import keywords, opened
from lmkbc.errors import InputError, OptionError, check_known, did_you_mean
from lmkbc.files.arrays import key
from lmkbc.kb.audit.contradicted import contradicted
from lmkbc.kb.audit.known import MarkedFact
from lmkbc.kb.base.knowledge import Knowledge
from lmkbc.kb.base.manifest import started
from lmkbc.kb.base.reviews import Reviews
from lmkbc.kb.base.schemas import FACTS, LEAST, SCHEMAS
from lmkbc.kb.builder.addition import Earlier
from lmkbc.kb.builder.base_directory import Directory
from lmkbc.kb.builder.engine import Engine
from lmkbc.kb.builder.facts import REACHED, is_unread
from lmkbc.kb.builder.growth import LEAST_MEAN, Bounds, Frontier, Growth
from lmkbc.kb.builder.inputs import inputs_of, rules_of
from lmkbc.kb.builder.settle import ENTITIES, REMOVED
from lmkbc.kb.builder.shards import SHARD, Build, BuildQueries, chosen
from lmkbc.kb.builder.subjects import Classes, SubjectFile
from lmkbc.link.index import AliasIndex
from lmkbc.plan import Plan
from lmkbc.progress import Report, silent
from lmkbc.run import directory as run_directory
from lmkbc.session.options import INPUT, SELECTION, RunOptions, SelectedRunOptions, Selection, settled
from lmkbc.session.subset import names_of
from lmkbc.tune.chooser import selector_for
from lmkbc.types import Query

if TYPE_CHECKING:
    from lmkbc.run.estimate import Estimate, Foreseen

log = logging.getLogger(__name__)
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_BACKEND_LOG_LEVEL": "fatal", "RAY_DEDUP_LOGS_SKIP_REGEX": ".*"}
"""Ray's variables at import: no usage statistics are sent, and logs go to Ray's own files."""
ORDERS = ("level", "value")
"""Orders in which a base grows; the first is the default."""


@dataclass(frozen=True)
class KnowledgeBase:
    """Facts about many subjects, with confidences. manifest: inputs, outputs and counts.

    contradicted: facts that labelled rows contradict, each with what its row says. Its tables are as they were built:
    `lmkbc.export` and all other readers of a base also follow the decisions of persons.
    """

    directory: Path
    manifest: Mapping[str, Any] = field(repr=False, compare=False)
    contradicted: Sequence[MarkedFact] = field(default=(), repr=False, compare=False)

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
    def replies(self) -> pl.LazyFrame:
        """Return what models wrote about each query: a row per model, with a text per draw."""
        return self._scanned("replies", SCHEMAS["replies"])

    @property
    def entities(self) -> pl.LazyFrame:
        """Return the entities in facts, each once, with names and the class for which most facts vote."""
        return self._scanned("entities", ENTITIES)

    @property
    def counts(self) -> Mapping[str, int]:
        """Return the numbers of subjects, queries, facts, linked facts, queries with nothing, and failed queries.

        They follow the decisions of persons; those of the manifest do not. stated_by_labels, quoted, reviewed: number
        of facts that labelled rows state, that a document supports, that a person decided. below_least: number of facts
        that were left out, since their confidence is below `least`.
        """
        every, sums = dict[str, int](self.manifest["counts"]), Counter[str]()
        for own in self.of_relations.values():
            sums.update(own)
        return every | sums

    @cached_property
    def of_relations(self) -> Mapping[str, Mapping[str, int]]:
        """Return relation -> its numbers, as in `counts`."""
        made: Mapping[str, Mapping[str, int]] = self.manifest["of_relations"]
        base = self._base
        if not base.reviews.rows:
            return made
        states = {"nothing": Counter(_relations(base.answers("nothing"))), "failed": Counter(self._left["relation"])}
        decided = {name: _counted(base.parts(name, [*COUNTED.values()])) for name in made}
        return {
            name: {**own, **decided[name], **{state: counts[name] for state, counts in states.items()}}
            for name, own in made.items()
        }

    @property
    def _base(self) -> Knowledge:
        return Knowledge(self.directory)

    @cached_property
    def _left(self) -> pl.DataFrame:
        """Return the missing queries of which no person decided what is right."""
        columns = ("relation", "reason")
        none = pl.DataFrame(schema=dict.fromkeys(columns, pl.String))
        return pl.concat([none, *(part.select(columns) for part in self._base.answers("missing"))])

    @property
    def failed(self) -> int:
        """Return the number of missing queries of which no person decided what is right."""
        return len(self._left)

    @property
    def unread(self) -> Mapping[str, int]:
        """Return relation -> number of these queries whose replies cannot be read."""
        return Counter(relation for relation, reason in self._left.iter_rows() if is_unread(reason))

    @property
    def unsure(self) -> list[str]:
        """Return the answered relations without a written fact."""
        return [name for name, count in self.of_relations.items() if count["nothing"] and not count["facts"]]

    @property
    def limit(self) -> str:
        """Return the limit (cost or tokens), if it is the only reason for these queries; else ""."""
        reasons = self._left["reason"].unique().sort()
        return reasons[0] if len(reasons) and not {*reasons} - {*REACHED.values()} else ""

    def _scanned(self, table: str, schema: Mapping[str, Any]) -> pl.LazyFrame:
        parts = [self.directory / name for name in self.manifest["outputs"] if name.startswith(f"{table}/")]
        if not parts:  # this table has no rows
            return pl.LazyFrame(schema=schema)
        folders = {"relation": pl.String()} if table == "facts" else None
        frame = pl.scan_parquet(sorted(parts), glob=False, hive_partitioning=bool(folders), hive_schema=folders)
        there = frame.collect_schema()  # a base of an earlier version may lack a column
        return frame.select(name if name in there else pl.lit(None, kind).alias(name) for name, kind in schema.items())

    def _repr_html_(self) -> str:
        line = ", ".join(f"{count} {name}" for name, count in self.counts.items())
        return shown("A knowledge base", f"{self.directory}: {line}", self.facts.head(10).collect())


COUNTED = {"linked": "object_id", "stated_by_labels": "stated_by", "quoted": "quote_file", "reviewed": "reviewed_by"}
"""Count of facts -> the column that these facts have."""


def _counted(parts: Iterable[pl.DataFrame]) -> dict[str, int]:
    """Return the numbers of facts, and of those that have each column of `COUNTED`."""
    made = Counter(facts=0, **dict.fromkeys(COUNTED, 0))
    for part in parts:
        made.update({"facts": len(part)} | {name: part[column].count() for name, column in COUNTED.items()})
    return dict(made)


def _relations(parts: Iterable[pl.DataFrame]) -> Iterator[str]:
    return (name for part in parts for name in part["relation"])


GROWTH, WORKERS = ({"group": name} for name in ("Growth", "Workers"))
"""Headings of the help of `lmkbc build`."""


@dataclass(frozen=True, kw_only=True)
class Workers:
    """Choice of the workers that answer the queries of a build."""

    engine: Annotated[
        str,
        Meta(
            description="process: one process. ray: workers of Ray Data, on this machine or a cluster.", extra=WORKERS
        ),
    ] = "process"
    address: Annotated[
        str | None, Meta(description="With --engine ray: the head of the cluster, HOST:PORT or auto.", extra=WORKERS)
    ] = None
    workers: Annotated[
        int | None,
        Meta(ge=1, description="With --engine ray: number of workers. Default: one per processor.", extra=WORKERS),
    ] = None
    gpus: Annotated[
        float, Meta(ge=0, description="With --engine ray: accelerators per worker, such as 1 or 0.5.", extra=WORKERS)
    ] = 0.0

    def opened(self) -> AbstractContextManager[Engine | None]:
        """Return the workers, None for this process. InputError for an engine that is unknown or not installed."""
        check_known(self.engine, ("process", "ray"), f"--engine is {self.engine!r}")
        if self.engine == "process":
            if self != IN_PROCESS:
                raise InputError("--address, --workers and --gpus are Ray's: give --engine ray too")
            return nullcontext()
        for variable, value in QUIET.items():
            os.environ.setdefault(variable, value)
        try:
            from lmkbc.kb.builder.ray_engine import connected
        except ImportError:
            raise InputError("--engine ray needs Ray: install lmkbc[scale]") from None
        return connected(self.address, self.workers, self.gpus)


IN_PROCESS = Workers()
"""No workers but this process."""


class _Planned(NamedTuple):
    plan: Plan
    subjects: SubjectFile
    queries: BuildQueries
    earlier: Earlier | None
    is_named: bool


@keywords
def build(
    subjects: Annotated[
        Path | str,
        Meta(description="Subjects (CSV, JSONL or Parquet) with a column name, and optionally id (QID) and class."),
    ],
    out: Annotated[
        Path | str,
        Meta(description="Directory of the knowledge base: new, empty, or an unfinished build to continue."),
    ],
    *,
    add: Annotated[
        bool,
        Meta(
            description="Add the subjects, and new relations, to the finished base. What it holds is not asked again.",
            extra=GROWTH,
        ),
    ] = False,
    relation: Annotated[
        str | Sequence[str] | None,
        Meta(description="Ask only this relation. Repeatable. Default: all relations of a subject's class."),
    ] = None,
    limit: Annotated[int | None, Meta(ge=1, description="Only the first N subjects.")] = None,
    grow: Annotated[
        int,
        Meta(
            ge=0, description="Ask about the objects of facts too, N levels deep.", extra={**GROWTH, "metavar": "DEPTH"}
        ),
    ] = 0,
    budget: Annotated[
        int | None, Meta(ge=1, description="With --grow: at most N subjects in all.", extra=GROWTH)
    ] = None,
    novelty: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="With --grow: stop when a smaller share of a level's entities is new, as in 0.1.",
            extra=GROWTH,
        ),
    ] = 0.0,
    grow_by: Annotated[
        str,
        Meta(
            description="With --grow: level: breadth first. value: first the subjects that promise the most right "
            "facts per token, and each relation until its newest facts fall below --precision, else 0.5.",
            extra=GROWTH,
        ),
    ] = "level",
    least: Annotated[
        float | None,
        Meta(
            ge=0,
            le=1,
            description="Smallest confidence of a fact, as in 0.5. Default: by --precision, else 0.7 of probabilities.",
            extra=SELECTION,
        ),
    ] = None,
    reviews: Annotated[
        Path | str | None,
        Meta(
            description="Base, or its file reviews.jsonl, whose decisions of persons this base takes over.",
            extra={**INPUT, "metavar": "BASE"},
        ),
    ] = None,
    progress: Report = silent,
    engine: AbstractContextManager[Engine | None] | None = None,
    **options: Unpack[SelectedRunOptions],
) -> KnowledgeBase:
    """Build a knowledge base: facts about all subjects as Parquet, with confidences. A build that was killed resumes.

    Named relations are also asked about subjects of unknown class. engine: workers that answer queries, default this
    process. progress: callback for progress.

    InputError for wrong input, before any model is asked. Failed queries are counted, and the same build asks them
    again.
    """
    if least is not None and not 0 <= least <= 1:
        raise OptionError("least", f"is {least}: give a confidence from 0 to 1")
    growth_only = {"budget": budget is not None, "novelty": novelty > 0, "grow_by": grow_by != ORDERS[0]}
    if unread := [name for name, is_given in growth_only.items() if is_given and not grow]:
        raise OptionError(unread[0], "is of growth, and there is none: give --grow too")
    if grow_by not in ORDERS:
        raise OptionError("grow_by", f"is {grow_by!r}: give {' or '.join(ORDERS)}")
    if add and grow:
        raise OptionError(
            "grow", "asks about what a base names, and an addition only about what is given: leave it out"
        )
    taken = Reviews() if reviews is None else Reviews.taken(Path(reviews))
    plan, found, queries, earlier, is_named = _planned(subjects, out, relation, limit, options, add=add)
    selection = settled(Selection, options)
    if earlier is not None and isinstance(selection["precision"], str):
        held = earlier.manifest.inputs.get("selection") or {}  # of its relations alone, another one may be the best
        selection = {**selection, "precision": held.get("precision", selection["precision"])}
    selector, provenance = selector_for(plan, selection, queries.relations if grow else queries.asked)
    precision = provenance.get("precision")
    bounds = Bounds(depth=grow, budget=budget, novelty=novelty)
    by_own = {one.name: one for one in queries.relations.values()}
    by_value = {"by": grow_by} if grow and grow_by != ORDERS[0] else {}
    names = {name: one.name for name, one in queries.relations.items()}
    frontier = Frontier(queries.classes, names, grow, precision or LEAST_MEAN) if by_value else None
    index = AliasIndex(plan.run.index) if plan.run.index else None
    growth = Growth(bounds, queries.classes, by_own, frontier)
    about = {
        **inputs_of(plan, provenance, queries.relations),
        "limit": limit,
        "least": least,
        "floor": LEAST if least is None and precision is None else None,
        "classes": key([msgspec.to_builtins(plan.run.workspace.classes), is_named]),
        "grow": asdict(bounds) | by_value if grow else None,
        "subjects": {"sha256": found.sha256, **found.counts},
    }
    if least is None and precision is not None:
        least = 0.0
    directory = Directory(Path(out))
    begun = started(about, queries.relations) | {"rules": rules_of(selector, queries.relations)}
    if earlier is not None:
        begun = earlier.started(begun, queries.subjects, queries.relations, plan.run.edition.folder)
        if selector.reads_others:
            raise InputError(
                f"{out}: its rules select facts by other facts of their block, so an addition would change them: build "
                f"all into a new directory with --reviews {out}; kept answers are not asked again"
            )
    with directory.held(), engine or nullcontext() as answering:
        work = Build(plan, selector, begun, engine=answering, least=least, index=index, earlier=earlier)
        made = work.into(directory, queries, growth, progress)
        taken.into(directory.path)
    return KnowledgeBase(directory.path, made, contradicted(directory.path, plan.run))


@keywords
def estimate_build(
    subjects: Path | str,
    out: Path | str,
    *,
    add: bool = False,
    relation: str | Sequence[str] | None = None,
    limit: int | None = None,
    progress: Report = silent,
    **options: Unpack[RunOptions],
) -> Estimate:
    """Estimate a build: how much it would ask, and how much of that is stored already. Arguments as in `build`."""
    from lmkbc.run.estimate import estimate  # here, since it loads the modules of models

    plan, asked = _asked(_planned(subjects, out, relation, limit, options, add=add))
    timings = run_directory.timings(plan.run.edition.name, plan.recipe.name, Path(out))
    return estimate(plan, asked, timings, progress)


@keywords
def foreseen_in_build(
    subjects: Path | str,
    out: Path | str,
    *,
    show: int,
    add: bool = False,
    relation: str | Sequence[str] | None = None,
    limit: int | None = None,
    **options: Unpack[RunOptions],
) -> list[Foreseen]:
    """Return all requests that a build may send about its first queries. show: their number. Others as in `build`."""
    from lmkbc.run.estimate import foreseen  # here, since it loads the modules of models

    plan, asked = _asked(_planned(subjects, out, relation, limit, options, add=add))
    return list(foreseen(plan, list(islice(asked, show))))


def _asked(planned: _Planned) -> tuple[Plan, Iterator[Query]]:
    """Return the plan of a build, and its queries without those that an earlier base keeps."""
    plan, _, queries, earlier, _ = planned
    asks = queries.asks()
    if earlier is not None:
        earlier.expect(lambda selection: inputs_of(plan, selection, queries.relations))
        kept = earlier.kept(asks, queries.relations, SHARD)
        asks = (ask for _, lacking, _ in kept for ask in lacking)
    return plan, (ask.query for ask in asks)


def _planned(
    subjects: Path | str,
    out: Path | str,
    relation: str | Sequence[str] | None,
    limit: int | None,
    options: RunOptions,
    *,
    add: bool,
) -> _Planned:
    """Return the queries of a build after a check of the whole file. InputError if there are none."""
    plan = opened(options, relation)
    space, names, earlier = plan.run.workspace, names_of(relation), Earlier(Path(out)) if add else None
    is_named = bool(names)
    if earlier is not None:
        is_named = earlier.names_relations(msgspec.to_builtins(space.classes), names)
        names = [*earlier.relations, *names] if is_named else ()
    relations = chosen(plan.run, names)
    found = SubjectFile(Path(subjects), limit, None if earlier is None else earlier.subjects)
    classes = Classes(relations, space.relations.values(), space.classes, named=is_named)
    queries = BuildQueries(found, relations, classes)
    if not queries.total:
        raise InputError(
            f"{subjects}: no subject is of a class that the relations ask about "
            f"({did_you_mean(next(filter(None, found.classes), ''), classes.nouns)}): give a column 'class', with "
            "names or QIDs, or name relations with --relation"
        )
    for remark in (*found.remarks, *queries.remarks()):
        log.info("%s", remark)
    return _Planned(plan, found, queries, earlier, is_named)
