"""`lmkbc report`: a run as one HTML file that opens from disk, or a knowledge base as a folder of files."""

from __future__ import annotations

import webbrowser
from typing import Annotated, Any

import typer
from rich.filesize import decimal

from lmkbc.api.pages import report as write_page
from lmkbc.commands.terminal import note, progress
from lmkbc.commands.typed import made_from

EXAMPLE = "Example: lmkbc report submissions/mini-val-embedded --open"


@made_from(write_page)
def report(
    *, browser: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False, **given: Any
) -> None:
    """Show a run in a browser: scores, figures and every row, in one HTML file that needs no network.

    The report of a knowledge base is a folder of files: coverage, confidences, contradictions, and every entity with
    its facts. Only --relation, --limit (of subjects), --out, --open and --workspace apply to it.

    --from names the recorded completions that the run read, and shows their replies. --index and --search-table name
    the sources of its links, and explain each link.
    """
    with progress() as report_progress:
        page = write_page(**given, progress=report_progress)
    what = "with the files beside it, which need no network" if page.folder else "one file that needs no network"
    note(f"{page.path}: {decimal(page.size)}, {what}")
    if browser:
        webbrowser.open(page.path.resolve().as_uri())
