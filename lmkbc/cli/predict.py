"""`lmkbc predict`: from a split's queries to a finished submission."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from lmkbc import submit
from lmkbc.atomic import check_directory, write_directory
from lmkbc.cli import options as given
from lmkbc.cli.screen import note, progress
from lmkbc.predict import decide, propose, run_files, selector_for

RUNS = Path("submissions")
EXAMPLE = "Example: lmkbc predict --split val --edition 2023 --from gpt4.jsonl.gz --search-table search.json"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("predict", epilog=EXAMPLE)(given.spread(predict))


def predict(
    *,
    split: given.Split = "test",
    asked: given.Asked,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many queries.")] = None,
    out: Annotated[Path | None, typer.Option(help="Run directory; default submissions/EDITION-SPLIT-SYSTEM.")] = None,
    failed_as_empty: Annotated[
        bool, typer.Option("--failed-as-empty", help="Submit queries without an answer as empty ones.")
    ] = False,
    any_thresholds: Annotated[
        bool, typer.Option("--any-thresholds", help="Use thresholds even where they were tuned on other data.")
    ] = False,
    means: given.Means,
    servers: given.Servers,
) -> None:
    """Make a checked submission for a split. Candidates, selection, linking, and a manifest of all that went in."""
    start = time.monotonic()
    check_directory(out or RUNS)
    context, recipe = given.opened(asked, means, servers)
    queries = context.workspace.queries(context.edition, split)[:limit]
    selector, provenance = selector_for(context, recipe, any_data=any_thresholds)
    with progress() as report:
        proposals = propose(context, recipe, queries, report)
    predictions = decide(selector, proposals.sets)
    written = run_files(context, recipe, split, proposals, predictions, provenance, failed_as_empty=failed_as_empty)
    seconds = round(time.monotonic() - start, 3)
    written[submit.TIMING] = (json.dumps({"seconds": seconds, "usage": proposals.usage}) + "\n").encode()
    directory = out if out is not None else RUNS / f"{context.edition.name}-{split}-{recipe.name}"
    write_directory(directory, written)
    counts = json.loads(written[submit.MANIFEST])["counts"]
    note(
        f"{directory / submit.ARCHIVE}: {counts['queries']} queries, {counts['objects']} objects, "
        f"{counts['empty']} empty answers; {provenance['how']}; {seconds:.0f} s"
    )
