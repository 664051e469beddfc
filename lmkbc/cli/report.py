"""`lmkbc report`: a run as one HTML file that opens from disk, or a knowledge base as a folder of files."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer
from rich.filesize import decimal

from lmkbc.api.pages import report as write_page
from lmkbc.cli.terminal import note, progress
from lmkbc.cli.typed import OneSplit

EXAMPLE = "Example: lmkbc report submissions/mini-val-embedded --open"


def report(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="Run directory, zip or predictions file, or a knowledge base.")
    ],
    split: OneSplit = None,
    edition: str | None = None,
    relation: list[str] | None = None,
    limit: int | None = None,
    gold: Path | None = None,
    files: list[Path] | None = None,
    index: Path | None = None,
    search_table: Path | None = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="File to write. Default: report.html in the run's directory. For a knowledge base: a new directory. "
            "Default: report, in the base's directory."
        ),
    ] = None,
    browser: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    data: Path | None = None,
    workspace: Path | None = None,
) -> None:
    """Show a run in a browser: scores, figures and every row, in one HTML file that needs no network.

    The report of a knowledge base is a folder of files: coverage, confidences, contradictions, and every entity with
    its facts. Only --relation, --limit (of subjects), --out, --open and --workspace apply to it.

    --from names the recorded completions that the run read, and shows their replies. --index and --search-table name
    the sources of its links, and explain each link.
    """
    with progress() as report_progress:
        page = write_page(
            run,
            out,
            gold=gold,
            edition=edition,
            split=split,
            files=files or (),
            index=index,
            search_table=search_table,
            relation=relation,
            limit=limit,
            data=data,
            workspace=workspace,
            progress=report_progress,
        )
    what = "with the files beside it, which need no network" if page.folder else "one file that needs no network"
    note(f"{page.path}: {decimal(page.size)}, {what}")
    if browser:
        webbrowser.open(page.path.resolve().as_uri())
