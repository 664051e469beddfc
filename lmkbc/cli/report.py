"""`lmkbc report`: a run as one HTML file that opens from disk."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from lmkbc.cli.options import Data, EditionName, Files, Root, chosen_edition
from lmkbc.cli.screen import note
from lmkbc.workspace import Workspace

EXAMPLE = "Example: lmkbc report submissions/mini-val-embedded --open"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("report", epilog=EXAMPLE)(report)


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory, zip or predictions file.")],
    split: Annotated[str | None, typer.Option("--split", "-s", help="train or val (or dev); else the run's.")] = None,
    edition: EditionName = None,
    gold: Annotated[Path | None, typer.Option(help="Gold file, in place of the split's.")] = None,
    replies: Files = None,
    out: Annotated[
        Path | None, typer.Option(help="File to write; default: report.html in the run's directory.")
    ] = None,
    browser: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
    data: Data = None,
    workspace: Root = None,
) -> None:
    """Show a run in a browser: scores, figures and every row, in one HTML file that needs no network.

    --from names the recorded completions that the run read, whose replies are then shown.
    """
    from lmkbc.files.atomic import check_file, write_bytes
    from lmkbc.finished import Finished, edition_of
    from lmkbc.report.run import Source, page
    from lmkbc.submission import REPORT

    space = Workspace(workspace, data)
    finished = Finished.at(run)
    place = out or (run / REPORT if run.is_dir() else Path(REPORT))
    check_file(place, finished.predictions, *filter(None, (gold, *(replies or ()))))
    chosen = edition_of(space, [finished], edition) or chosen_edition(space, None)
    part = split or finished.said("split") or "val"
    path = gold if gold is not None else space.gold_path(chosen, part)
    written = page(space, Source(finished, chosen, part, path, tuple(replies or ()))).encode()
    write_bytes(place, written)
    note(f"{place}: {len(written) / 1e6:.1f} MB, one file that needs no network")
    if browser:
        webbrowser.open(place.resolve().as_uri())
