"""Function `report`: a run as one HTML file that opens from disk, or a knowledge base as a folder of such files."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from lmkbc.api.scores import HasRun, open_run, run_edition, scored_on
from lmkbc.commands.keywords import keywords
from lmkbc.errors import OptionError
from lmkbc.files.checksum import content_sha256, file_sha256
from lmkbc.files.places import all_placed, given_as, placed
from lmkbc.generate.script_rows import as_recorded
from lmkbc.progress import Report, silent
from lmkbc.run.submission import REPORT
from lmkbc.session.options import (
    DataDir,
    EditionName,
    Gold,
    Index,
    Limit,
    OneRelation,
    OneSplit,
    Recorded,
    SearchTable,
    Trust,
    WorkspaceDir,
)
from lmkbc.session.subset import names_of, own_names
from lmkbc.workspace import Workspace

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Page:
    """A page that was written: its path, and its size in bytes. A notebook shows a link to it.

    folder: whether it needs other files in its folder, which its size includes.
    """

    path: Path
    size: int
    folder: bool = False

    def _repr_html_(self) -> str:
        from html import escape

        return f'<a href="{escape(self.path.resolve().as_uri())}">{escape(str(self.path))}</a>'


@keywords
def report(
    run: Annotated[
        Path | str | HasRun,
        Meta(
            description="Run directory, zip or predictions file, or a knowledge base.",
            extra={"argument": True, "metavar": "RUN"},
        ),
    ],
    out: Annotated[
        Path | str | None,
        Meta(
            description="File to write. Default: report.html in the run's directory. For a knowledge base: a new "
            "directory. Default: report, in the base's directory."
        ),
    ] = None,
    *,
    split: OneSplit = None,
    edition: EditionName = None,
    relation: OneRelation = None,
    limit: Limit = None,
    gold: Gold = None,
    files: Recorded = None,
    index: Index = None,
    search_table: SearchTable = None,
    data: DataDir = None,
    workspace: WorkspaceDir = None,
    trust: Trust = False,
    progress: Report = silent,
) -> Page:
    """Write a run as a page with scores, figures and every row; or a knowledge base as pages with every entity.

    run: may also be a result of `lmkbc.predict` or `lmkbc.build`.
    files: of those that the run read, the page shows the replies.
    index, search_table: sources of the run's links, used to explain each link. The train split is used too, and, if
    $LMKBC_CONTACT is set, the cache of Wikidata's answers.
    progress: callback for progress.

    A knowledge base takes only out, relation, limit (of subjects), workspace and progress.
    """
    base = run.directory if isinstance(run, HasRun) else Path(run) if isinstance(run, Path | str) else None
    if base is not None and is_knowledge(base):
        _refuse(
            base,
            gold=gold,
            edition=edition,
            split=split,
            files=files,
            index=index,
            search_table=search_table,
            data=data,
        )
        return _base(base, out, Workspace(workspace, trust=trust), names_of(relation), limit, progress)
    from lmkbc.report.links import Evidence
    from lmkbc.report.page import check_page
    from lmkbc.report.run_page import ReportInput, write  # here, since it draws figures
    from lmkbc.report.unlabelled_page import write as write_unlabelled

    opened, space = open_run(run), Workspace(workspace, data, trust=trust)
    of = run_edition(space, [opened], edition)
    replies = as_recorded(all_placed(files), space, of, opened.manifest.get("relations") or ())
    place = Path(out) if out is not None else opened.path / REPORT if opened.path.is_dir() else Path(REPORT)
    evidence = Evidence.of(placed(index), placed(search_table))
    check_page(place, opened.predictions, placed(gold), evidence.index, evidence.search_table, *replies)
    if inputs := opened.table("inputs"):
        read = {*map(str, inputs.values()), *map(str, opened.table("outputs").values())}
        for path in replies:
            if read.isdisjoint({content_sha256(path), file_sha256(path)}):
                log.warning(
                    "%s is not among the files that the run read, so its replies may be of other answers",
                    given_as(path),
                )
    named = of.split_named(split or opened.text("split") or of.held_out)
    if gold is None and not space.has_gold(of, named):
        write_unlabelled(opened, of, named, place)
        return Page(place, place.stat().st_size)
    chosen, subset, named, path = scored_on(space, [opened], edition, split, gold, relation, limit)
    write(space, ReportInput(opened, chosen, named, path, replies, subset, evidence), place, progress)
    return Page(place, place.stat().st_size)


def is_knowledge(path: Path) -> bool:
    """Return whether a directory is a knowledge base, finished or not."""
    return any((path / name).is_dir() for name in ("facts", "nothing", "unfinished"))


def _refuse(base: Path, **options: object) -> None:
    """Raise OptionError for a given option that only a run has."""
    for name, value in options.items():
        if value:
            raise OptionError(name, f"is of a run, and {base} is a knowledge base: leave it out")


def _base(
    path: Path, out: Path | str | None, space: Workspace, relations: Sequence[str], limit: int | None, progress: Report
) -> Page:
    from lmkbc.kb.base.knowledge import Knowledge
    from lmkbc.kb.pages import site

    if limit is not None and limit < 1:
        raise OptionError("limit", f"is {limit}: give at least one subject")
    folder = Path(out) if out is not None else path / site.FOLDER
    base = Knowledge(path, chosen=own_names(space, relations), limit=limit)
    base.describe(space.relations)
    return Page(folder / site.INDEX, site.write(base, folder, progress), folder=True)
