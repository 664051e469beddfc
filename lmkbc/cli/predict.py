"""`lmkbc predict`: from a split's queries to a finished submission."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from lmkbc import submit
from lmkbc.atomic import write_directory
from lmkbc.cli import options as given
from lmkbc.cli.screen import note, progress
from lmkbc.predict import decide, propose, run_files, selector_for

EXAMPLE = "Example: lmkbc predict --split val --edition 2023 --from gpt4.jsonl.gz --search-table search.json"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("predict", epilog=EXAMPLE)(predict)


def predict(
    split: given.Split = "test",
    edition: given.EditionName = None,
    system: given.SystemName = None,
    model: given.Model = None,
    files: given.Files = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many queries.")] = None,
    out: Annotated[Path | None, typer.Option(help="Run directory; default submissions/EDITION-SPLIT-SYSTEM.")] = None,
    failed_as_empty: Annotated[
        bool, typer.Option("--failed-as-empty", help="Submit queries without an answer as empty ones.")
    ] = False,
    any_thresholds: Annotated[
        bool, typer.Option("--any-thresholds", help="Use thresholds even where they were tuned on other data.")
    ] = False,
    data: given.Data = None,
    offline: given.Offline = False,
    search_table: given.SearchTable = None,
    index: given.IndexPath = None,
    workspace: given.Root = None,
    base_url: given.BaseUrl = None,
    concurrency: given.Concurrency = None,
    max_cost: given.MaxCost = None,
    max_tokens: given.MaxTokens = None,
    prices: given.Prices = None,
    store: given.StorePath = None,
) -> None:
    """Predict a split: candidates, selection, linking, and a checked submission with its manifest."""
    start = time.monotonic()
    servers = given.server_options(base_url, concurrency, max_cost, max_tokens, prices, store)
    context, recipe = given.opened(
        workspace, data, edition, system, model, files, search_table, offline, servers, index
    )  # fmt: skip
    queries = context.workspace.queries(context.edition, split)[:limit]
    selector, provenance = selector_for(context, recipe, any_data=any_thresholds)
    with progress() as report:
        proposals = propose(context, recipe, queries, report)
    predictions = decide(selector, proposals.sets)
    written = run_files(context, recipe, split, proposals, predictions, provenance, failed_as_empty=failed_as_empty)
    seconds = round(time.monotonic() - start, 3)
    written[submit.TIMING] = (json.dumps({"seconds": seconds, "usage": proposals.usage}) + "\n").encode()
    directory = out if out is not None else Path("submissions") / f"{context.edition.name}-{split}-{recipe.name}"
    write_directory(directory, written)
    counts = json.loads(written[submit.MANIFEST])["counts"]
    note(
        f"{directory / submit.ARCHIVE}: {counts['queries']} queries, {counts['objects']} objects, "
        f"{counts['empty']} empty answers; {provenance['how']}; {seconds:.0f} s"
    )
