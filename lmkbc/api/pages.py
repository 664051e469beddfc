"""A run as one HTML file that opens from disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lmkbc.api.options import keywords
from lmkbc.api.scores import HasRun, open_run, run_edition
from lmkbc.files.atomic import write_bytes
from lmkbc.files.places import placed
from lmkbc.files.writable import check_file
from lmkbc.progress import Report, silent
from lmkbc.run.submission import REPORT
from lmkbc.run.subset import Subset
from lmkbc.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Page:
    """A page that was written: where, and its size in bytes. A notebook shows a link to it."""

    path: Path
    size: int

    def _repr_html_(self) -> str:
        from html import escape

        return f'<a href="{escape(self.path.resolve().as_uri())}">{escape(str(self.path))}</a>'


@keywords()
def report(
    run: Path | str | HasRun,
    out: Path | str | None = None,
    *,
    gold: Path | str | None = None,
    edition: str | None = None,
    split: str | None = None,
    files: Sequence[Path | str] = (),
    index: Path | str | None = None,
    search_table: Path | str | None = None,
    relation: str | Sequence[str] | None = None,
    limit: int | None = None,
    data: Path | str | None = None,
    workspace: Path | str | None = None,
    progress: Report = silent,
) -> Page:
    """Write a run as a page: scores, figures and every row.

    run: what `lmkbc.predict` returned, a directory, a zip or a predictions file. out: the file; else report.html in the
    run's directory, or here. gold: a file, else the split's. files: the recorded completions that the run read, whose
    replies are then shown. index, search_table: what it linked from, which tell why a name has its link, beside train
    and, where $LMKBC_CONTACT is set, what was kept of Wikidata's answers. relation, limit: of these relations, or the
    first so many queries, alone. progress: a callback.
    """
    from lmkbc.report.links import Evidence
    from lmkbc.report.run import ReportInput, page  # which draws figures

    opened, space, replies = open_run(run), Workspace(workspace, data), tuple(map(Path, files))
    place = Path(out) if out is not None else opened.path / REPORT if opened.path.is_dir() else Path(REPORT)
    path, evidence = placed(gold), Evidence.of(placed(index), placed(search_table))
    given = (path, evidence.index, evidence.search_table, *replies)
    check_file(place, opened.predictions, *filter(None, given))
    chosen = run_edition(space, [opened], edition)
    subset = Subset.of(space, chosen, relation, limit)
    named = split or opened.text("split") or "val"
    path = path or space.gold_path(chosen, named)
    written = page(space, ReportInput(opened, chosen, named, path, replies, subset, evidence), progress).encode()
    write_bytes(place, written)
    return Page(place, len(written))
