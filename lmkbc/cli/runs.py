"""`lmkbc runs`: the runs in a folder, as a table."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec.json import encode as written

from lmkbc.api.history import RunRow
from lmkbc.api.history import runs as list_runs
from lmkbc.commands.terminal import note, show_json, show_table
from lmkbc.commands.typed import made_from
from lmkbc.errors import InputError, OptionError
from lmkbc.run.saved import ASKED, CHANGED, SavedRun, differences

EXAMPLE = "Example: lmkbc runs submissions --html submissions/index.html"
HEADS = (
    *("run", "edition", "split", "system", "models", "F1", "low", "high"),
    *("rules", "out of fold", "cost", "date", "note"),
)


@made_from(list_runs)
def runs(
    *,
    html: Annotated[Path | None, typer.Option(help="Write an HTML page too, with links to the reports.")] = None,
    diff: Annotated[
        tuple[Path, Path] | None,
        typer.Option(help="Print the settings and inputs in which two runs differ.", metavar="RUN RUN"),
    ] = None,
    json: bool = False,
    **given: Any,
) -> None:
    """List the runs in a folder, newest first. F1 and its 95 % interval are shown if gold is known."""
    if diff is not None:
        if name := next((name for name in ("html", "edition") if (given | {"html": html})[name] is not None), None):
            raise OptionError(name, "is of the list of a folder's runs: leave it out, or leave --diff out")
        _show_differences(*map(SavedRun.at, diff), json=json)
        return
    found = list_runs(**given)
    if html is not None:
        note(f"{found.write(html)}: written; open it in a browser")
    if json:
        show_json([asdict(row) for row in found.rows])
        return
    show_table(HEADS, [_line(row) for row in found.rows])
    for row in found.rows:
        if row.changed:
            note(f"{row.name}: {CHANGED}")


def _show_differences(first: SavedRun, second: SavedRun, *, json: bool) -> None:
    """Print the settings and inputs in which two runs differ. InputError for predictions without a manifest."""
    for run in (first, second):
        if not run.manifest:
            raise InputError(f"{run.path} has no manifest that fits it, so its settings are not known: give a run")
    found = differences(first.manifest, second.manifest, (*ASKED, "note", "versions"))
    if json:
        show_json({path: list(values) for path, values in found.items()})
        return
    rows = [[path, *(None if one is None else written(one).decode() for one in pair)] for path, pair in found.items()]
    show_table(["setting", str(first.path), str(second.path)], rows)


def _line(row: RunRow) -> list[Any]:
    return [
        *(row.name, row.edition, "; ".join(filter(None, (row.split, row.part))), row.system, row.models),
        *(row.f1, row.low, row.high, row.rules, row.out_of_fold, row.cost, row.date, row.note),
    ]
