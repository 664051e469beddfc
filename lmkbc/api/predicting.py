"""Function `predict`: from a split's queries to a finished run; and the class that represents a run."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Unpack

from msgspec import Meta

from lmkbc.api.comparing import Comparisons, compare
from lmkbc.api.pages import Page, report
from lmkbc.api.scores import HasRun, Scores, run_edition, score
from lmkbc.commands.data_frames import shown
from lmkbc.commands.keywords import keywords, opened_relation, opened_subset
from lmkbc.edition import Edition
from lmkbc.errors import InputError, counted
from lmkbc.notes import Live, unheard
from lmkbc.progress import ExpectedStep, Report, silent
from lmkbc.run.saved import RunTiming, SavedRun
from lmkbc.session.options import OUTPUT, OneRelation, RunOptions, SelectedRunOptions, Selection, Split, settled
from lmkbc.types import Query
from lmkbc.workspace import Workspace

if TYPE_CHECKING:
    import polars as pl

    from lmkbc.run.directory import RunCounts
    from lmkbc.run.estimate import Estimate, Foreseen
    from lmkbc.scoring.table import Table


log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PredictedRun:
    """A run in a directory, with its answers, candidates, manifest, score and page.

    sources: options that locate its edition and data. tally: counts of the run, None if it was not made just now.
    whole: number of queries of the split, 0 if it was not made just now. floors: scores of answers without a model, if
    a page was made just now. labelled: whether its split is known to have gold. learns: whether its system learns from
    labelled rows.
    """

    directory: Path
    edition: Edition
    split: str
    sources: RunOptions
    tally: RunCounts | None = field(default=None, repr=False, compare=False)
    whole: int = field(default=0, repr=False, compare=False)
    floors: Mapping[str, Table] = field(default_factory=dict, repr=False, compare=False)
    labelled: bool = field(default=False, repr=False, compare=False)
    learns: bool = field(default=False, repr=False, compare=False)

    @cached_property
    def manifest(self) -> Mapping[str, Any]:
        """Return the run's inputs and outputs: recipe, thresholds, hashes, versions, counts."""
        return SavedRun.at(self.directory).manifest

    @cached_property
    def predictions(self) -> pl.DataFrame:
        """Return the answers: SubjectEntity, Relation, objects. Objects are QIDs and literals, or names, by edition."""
        import polars as pl

        answers = SavedRun.at(self.directory).predicted(self.edition)
        rows = [(*pair, list(objects)) for pair, objects in answers.items()]
        kinds = [("SubjectEntity", pl.String()), ("Relation", pl.String()), ("objects", pl.List(pl.String()))]
        return pl.DataFrame(rows, schema=kinds, orient="row")

    @cached_property
    def candidates(self) -> pl.DataFrame:
        """Return candidates: SubjectEntity, Relation, object, id, score, source.

        An empty object stands for "no object".
        """
        import polars as pl

        from lmkbc.generate.recorded_rows import each_row
        from lmkbc.run.submission import CANDIDATES

        path = self.directory / CANDIDATES
        read = each_row(path, self.edition) if path.is_file() else ()
        rows = [
            (row.SubjectEntity, row.Relation, one.object, one.id, one.score, one.source)
            for row in read
            for one in row.candidates or ()
        ]
        texts = ("SubjectEntity", "Relation", "object", "id")
        kinds = [*((name, pl.String()) for name in texts), ("score", pl.Float64()), ("source", pl.String())]
        return pl.DataFrame(rows, schema=kinds, orient="row")

    @keywords
    def evaluate(
        self,
        gold: Path | str | None = None,
        *,
        profile: str = "",
        relation: str | Sequence[str] | None = None,
        limit: int | None = None,
    ) -> Scores:
        """Return the official score. Arguments as in `lmkbc.score`. InputError if the split has no gold."""
        return score(self, gold, profile=profile, relation=relation, limit=limit, **self._named)

    @keywords
    def compare(self, *others: Path | str | HasRun) -> Comparisons:
        """Compare this run with others, as `lmkbc.compare`."""
        return compare(self, *others, **self._named)

    @keywords
    def report(self, out: Path | str | None = None, *, progress: Report = silent) -> Page:
        """Write the run's page, as `lmkbc.report`."""
        read = self.sources
        return report(
            self,
            out,
            files=tuple(read.get("files") or ()),
            index=read.get("index"),
            search_table=read.get("search_table"),
            progress=progress,
            **self._named,
        )

    @property
    def _named(self) -> Any:
        return {"edition": self.edition.name} | {
            name: self.sources.get(name) for name in ("data", "workspace", "trust")
        }

    @property
    def title(self) -> str:
        """Return the system, edition and split."""
        return f"{self.manifest.get('system', self.directory.name)} on {self.edition.title}, {self.split}"

    def __repr__(self) -> str:
        return f"<PredictedRun {self.title}: {self.directory}>"

    def _repr_html_(self) -> str:
        counts = SavedRun.at(self.directory).table("counts")
        told = [f"{counts[name]} {name}" for name in ("queries", "objects", "empty", "failed") if name in counts]
        return shown(self.title, f"{self.directory}: {', '.join(told)}", self.predictions.head(10))


@keywords
def predict(
    split: Split = "test",
    *,
    relation: OneRelation = None,
    limit: Annotated[
        int | None,
        Meta(ge=1, description="Only the first N queries, of all relations together; such a run gets no zip."),
    ] = None,
    out: Annotated[
        Path | str | None,
        Meta(
            description="Directory of the run: new, empty or the same run. Default: submissions/EDITION-SPLIT-SYSTEM, "
            "with a number if another run is there.",
            extra=OUTPUT,
        ),
    ] = None,
    note: Annotated[
        str | None,
        Meta(description="Remark about the run, which 'lmkbc runs' lists.", extra={**OUTPUT, "metavar": "TEXT"}),
    ] = None,
    failed_as_empty: Annotated[
        bool, Meta(description="Submit queries whose model call failed as empty answers.", extra=OUTPUT)
    ] = False,
    progress: Report = silent,
    live: Live = unheard,
    page: Annotated[
        bool,
        Meta(
            description="Write report.html into the run, for labelled splits.",
            extra={**OUTPUT, "flags": ("--report/--no-report",), "envvar": "LMKBC_REPORT", "default": True},
        ),
    ] = False,
    **options: Unpack[SelectedRunOptions],
) -> PredictedRun:
    """Make a run: candidates, links, selection, a checked submission, and a manifest of all inputs.

    By default, a run of the test split learns from train and the labelled held-out split, others from train. With
    relation or limit, no zip is written. progress: callback for progress. live: callback for each text of a model.

    InputError for wrong input, before any model is asked; LmkbcError if queries failed.
    """
    from lmkbc.files.writable import writing_alone
    from lmkbc.run import directory as run_directory
    from lmkbc.run import submission
    from lmkbc.run.directory import RunFiles
    from lmkbc.run.pipeline import Steps, as_one
    from lmkbc.tune.chooser import nothing_sure, selector_for

    start = time.monotonic()
    plan, asked = opened_subset(options, split, relation, limit)
    run, split, every = plan.run, plan.run.split, plan.run.queries
    queries = list(asked.rows(every, lambda query: query.relation))
    if not queries:
        raise InputError(
            f"the {split} split has no query of {', '.join(sorted(asked.relations))}: name other relations"
        )
    if again := len(queries) - len(set(queries)):
        log.info(
            "%s more than once in the split: each is asked and scored once",
            counted(again, "query stands", "queries stand"),
        )
    subset = asked if len(queries) < len(every) else None
    relations = {query.relation for query in queries}
    selector, provenance = selector_for(plan, settled(Selection, options), relations)
    about = run_directory.identity(plan, provenance, subset)
    own = Path(out or run_directory.named(run.edition.name, split, plan.recipe.name, subset, selector))
    directory = run_directory.free(own, about) if out is None else own
    with (
        writing_alone(directory),
        closing(RunFiles(run.edition, as_empty=failed_as_empty, statements=run.statements)) as files,
    ):
        run_directory.check(directory, about)
        labelled = run.workspace.has_gold(run.edition, split)
        if page and labelled:
            progress(ExpectedStep("figures"), 0, 6)  # of the page
        steps = Steps(plan, progress, live, partial=failed_as_empty)
        blocks = steps.over(queries)
        for block in as_one(blocks) if selector.reads_others else blocks:
            files.add(block, selector.select_all(block.sets))
        steps.ended()
        if "precision" in provenance and not (files.tally.objects or files.tally.failed):
            raise nothing_sure(selector, provenance["precision"], provenance["promise"], relations)
        note = note or (run_directory.earlier(directory) or {}).get("note")
        about |= {"models": steps.models} if steps.models else {}
        written = files.finished(about, note)
        spent = RunTiming.read(directory / submission.TIMING).then(round(time.monotonic() - start, 3), steps.usage)
        timing = {"seconds": spent.seconds, "usage": spent.usage, "computed": run.computed}
        written[submission.TIMING] = (json.dumps(timing) + "\n").encode()
        directory = run_directory.write(directory, written, own, about)
    if submission.PREDICTIONS not in written:
        raise run_directory.unfinished(files.tally.failures, directory, written)
    floors: Mapping[str, Table] = {}
    if page and labelled:
        from lmkbc.report.run_page import write_beside  # here, since it draws figures

        floors = write_beside(run, directory, split, progress)
    return PredictedRun(
        directory, run.edition, split, options, files.tally, len(every), floors, labelled, plan.recipe.learns
    )


@keywords
def estimate(
    split: str,
    *,
    relation: str | Sequence[str] | None = None,
    limit: int | None = None,
    out: Path | str | None = None,
    progress: Report = silent,
    **options: Unpack[RunOptions],
) -> Estimate:
    """Estimate a run of a split or of a subset: how much it would ask, and how much of that is stored already.

    relation, limit, progress and options: as in `lmkbc.predict`. out: directory of an earlier run, used to estimate the
    time. InputError as in `lmkbc.predict`.
    """
    from lmkbc.run import directory as run_directory
    from lmkbc.run.estimate import estimate as estimate_run  # here, since it loads the modules of models

    plan, subset = opened_subset(options, split, relation, limit)
    edition, system = plan.run.edition.name, plan.recipe.name
    queries = subset.rows(plan.run.queries, lambda query: query.relation)
    own = out or run_directory.named(edition, plan.run.split, system, None if subset.is_whole else subset)
    return estimate_run(plan, queries, run_directory.timings(edition, system, Path(own)), progress)


@keywords
def foreseen(
    split: str | None = None,
    *,
    subject: str = "",
    relation: str | Sequence[str] | None = None,
    limit: int | None = None,
    **options: Unpack[RunOptions],
) -> list[Foreseen]:
    """Return all requests that may be sent about the queries of a split, or about a subject and its relation."""
    from lmkbc.run.estimate import foreseen as foreseen_of  # here, since it loads the modules of models

    if subject and isinstance(relation, str):
        plan, name = opened_relation(options, relation)
        return list(foreseen_of(plan, [Query(subject, name)]))
    plan, subset = opened_subset(options, split, relation, limit)
    return list(foreseen_of(plan, list(subset.rows(plan.run.queries, lambda query: query.relation))))


@keywords
def read_run(
    directory: Path | str,
    edition: str | None = None,
    *,
    data: Path | str | None = None,
    workspace: Path | str | None = None,
    trust: bool = False,
) -> PredictedRun:
    """Open an earlier run by its directory. edition: needed if the manifest does not name it."""
    place, sources = Path(directory), RunOptions(data=data, workspace=workspace, trust=trust)
    if not place.is_dir():
        raise InputError(f"{place} is no directory: give that of a run; lmkbc.score takes a file or zip")
    finished = SavedRun.at(place)
    chosen = run_edition(Workspace(workspace, data, trust=trust), [finished], edition)
    return PredictedRun(place, chosen, finished.text("split") or chosen.held_out, sources)
