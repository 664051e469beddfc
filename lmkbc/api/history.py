"""Function `runs`: the runs in a folder as a table, with what each one is, its score and its cost."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from lmkbc.api.scores import Scores, score
from lmkbc.commands.data_frames import shown
from lmkbc.commands.keywords import keywords
from lmkbc.errors import InputError
from lmkbc.files.atomic import write_bytes
from lmkbc.run import submission
from lmkbc.run.saved import RunTiming, SavedRun
from lmkbc.session.options import DataDir, EditionName, Trust, WorkspaceDir
from lmkbc.workspace import Workspace

if TYPE_CHECKING:
    import polars as pl

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunRow:
    """Row of one run.

    f1, low, high: macro-F1 and its 95 % interval; None without gold here.
    part: part of the split that it asked, "" for all.
    rules: "tuned on this split", "tuned elsewhere" or "untuned".
    out_of_fold: F1 out of fold, if rules were tuned on the split and it is known of what the run asked.
    cost: in the currency of the prices; None without prices.
    date: end of the run, in UTC.
    page: its report; None without one.
    changed: whether its predictions are not those of its manifest.
    note: the user's remark, "" for none.
    """

    name: str
    edition: str
    split: str
    part: str
    system: str
    models: str
    f1: float | None
    low: float | None
    high: float | None
    out_of_fold: float | None
    rules: str
    seconds: float | None
    tokens: int | None
    cost: float | None
    date: str
    page: str | None
    changed: bool
    note: str = ""


@dataclass(frozen=True)
class Runs:
    """The runs in a folder, newest first."""

    folder: Path
    rows: Sequence[RunRow]

    @cached_property
    def table(self) -> pl.DataFrame:
        """Return a row per run, with the fields of a `RunRow`."""
        import polars as pl

        return pl.DataFrame([asdict(row) for row in self.rows])

    def write(self, path: Path | str | None = None) -> Path:
        """Write a page with links to the runs' reports, and return its path. path: default index.html in the folder."""
        from lmkbc.report.page import check_page, render

        place = self.folder / "index.html" if path is None else Path(path)
        check_page(place)
        links = {
            row.name: Path(os.path.relpath(self.folder / row.page, place.parent)).as_posix()
            for row in self.rows
            if row.page
        }
        title, plot = f"Runs in {self.folder.resolve().name}", None
        points = [(row.name, row.cost, row.f1) for row in self.rows if row.cost is not None and row.f1 is not None]
        if len(points) > 1:
            from lmkbc.report.figures import costs, drawable  # here, since it loads numpy

            plot = costs(points) if drawable() else None
        write_bytes(place, render("runs.html", title=title, rows=self.rows, links=links, plot=plot).encode())
        return place

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"<Runs {self.folder}: {len(self.rows)}>"

    def _repr_html_(self) -> str:
        return shown(f"Runs in {self.folder}", self.table)


@keywords
def runs(
    folder: Annotated[
        Path | str, Meta(description="The folder that holds the runs.", extra={"argument": True})
    ] = "submissions",
    *,
    edition: EditionName = None,
    data: DataDir = None,
    workspace: WorkspaceDir = None,
    trust: Trust = False,
) -> Runs:
    """List the runs in a folder, and score those with gold here. edition: list only runs of this edition.

    Other files in the folder are ignored. InputError if the folder does not exist, or holds no run.
    """
    place = Path(folder)
    if not place.is_dir():
        raise InputError(f"{place} is no folder: name the one that holds your runs")
    space, scored = Workspace(workspace, data, trust=trust), partial(score, data=data, workspace=workspace, trust=trust)
    if edition is not None:
        space.edition(edition)
    found = [row for row in _rows(space, place, scored) if edition in (None, row.edition)]
    if not found:
        of = "" if edition is None else f" of edition {edition}"
        own = (place / submission.PREDICTIONS).is_file()
        how = "it is a run itself, so name the folder that it lies in" if own else "'lmkbc predict' writes one"
        raise InputError(f"{place} holds no run{of}: {how}")
    return Runs(place, sorted(found, key=lambda row: (_made(place / row.name), row.name), reverse=True))


def _rows(space: Workspace, folder: Path, scored: Callable[[Path], Scores]) -> Iterator[RunRow]:
    for path in sorted(folder.iterdir()):
        if not (path / submission.MANIFEST).is_file() or not (path / submission.PREDICTIONS).is_file():
            continue
        try:
            yield _row(space, SavedRun.at(path), scored)
        except InputError as error:
            log.warning("%s: left out: %s", path, error)


def _row(space: Workspace, run: SavedRun, scored: Callable[[Path], Scores]) -> RunRow:
    name, split = run.text("edition") or "", run.text("split") or ""
    seen, chosen = run.in_sample, run.table("selection")
    f1 = interval = None
    if name in space.editions and space.has_data(of := space.edition(name), split) and space.has_gold(of, split):
        scores = scored(run.path)
        f1, interval, seen = scores.f1, scores.interval, scores.in_sample
    timing = RunTiming.read(run.path / submission.TIMING)
    page = run.path / submission.REPORT
    return RunRow(
        name=run.path.name,
        edition=name,
        split=split,
        part=run.subset.words,
        system=run.text("system") or "",
        models=", ".join(map(str, run.manifest.get("models") or ())),
        f1=f1,
        low=interval and interval[0],
        high=interval and interval[1],
        out_of_fold=None if seen is None or seen.over else seen.f1,
        rules="tuned on this split" if seen else "tuned elsewhere" if "data_sha256" in chosen else "untuned",
        seconds=timing.seconds,
        tokens=timing.tokens,
        cost=timing.total("cost"),
        date=datetime.fromtimestamp(_made(run.path), UTC).strftime("%Y-%m-%d %H:%M"),
        page=f"{run.path.name}/{submission.REPORT}" if page.is_file() else None,
        changed=run.changed,
        note=run.text("note") or "",
    )


def _made(run: Path) -> float:
    """Return when a run was written, in seconds."""
    return (run / submission.MANIFEST).stat().st_mtime
