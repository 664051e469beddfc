"""`lmkbc predict`: from a split's queries to a finished submission."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from lmkbc import run_directory, submission
from lmkbc.cli import options
from lmkbc.cli.foresight import foresee
from lmkbc.cli.run_options import RecipeOptions, ServerOptions, SourceOptions, opened
from lmkbc.cli.screen import note
from lmkbc.cli.spread import spread
from lmkbc.cli.terminal import progress
from lmkbc.pipeline import Proposing, decide, selector_for
from lmkbc.run_files import RunFiles
from lmkbc.workspace import has_gold

EXAMPLE = "Example: lmkbc predict --split val --edition 2023 --from gpt4.jsonl.gz --search-table search.json"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("predict", epilog=EXAMPLE)(spread(predict))


def predict(
    *,
    split: options.Split = "test",
    recipe_options: RecipeOptions,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Only the first so many queries: no submission, no zip.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Run directory: new, empty or a run; default submissions/EDITION-SPLIT-SYSTEM.")
    ] = None,
    failed_as_empty: Annotated[
        bool, typer.Option("--failed-as-empty", help="Submit queries without an answer as empty ones.")
    ] = False,
    any_thresholds: Annotated[
        bool, typer.Option("--any-thresholds", help="Use thresholds even where they were tuned on other data.")
    ] = False,
    precision: options.Precision = None,
    dry_run: options.DryRun = False,
    page: Annotated[
        bool, typer.Option("--report/--no-report", envvar="LMKBC_REPORT", help="Add report.html where gold is known.")
    ] = True,
    source_options: SourceOptions,
    server_options: ServerOptions,
) -> None:
    """Make a checked submission for a split. Candidates, selection, linking, and a manifest of all that went in."""
    start = time.monotonic()
    run, recipe = opened(recipe_options, source_options, server_options)
    every = run.workspace.queries(run.edition, split)
    queries = every[:limit]
    cut = limit if len(queries) < len(every) else None
    directory = out if out is not None else run_directory.named(run.edition.name, split, recipe.name, cut)
    selector, provenance = selector_for(run, recipe, any_data=any_thresholds, precision=precision)
    if dry_run:
        foresee(run, recipe, queries, run_directory.timings(run.edition.name, recipe.name, directory))
        return
    run_directory.check(directory, cut)
    with RunFiles(run.edition) as files:
        with progress() as report:
            steps = Proposing(run, recipe, queries, report)
            for block in steps:
                files.add(block, decide(selector, block.sets))
        written = files.finished(run, recipe, split, queries, provenance, failed_as_empty=failed_as_empty, limit=cut)
        seconds = round(time.monotonic() - start, 3)
        written[submission.TIMING] = (json.dumps({"seconds": seconds, "usage": steps.usage}) + "\n").encode()
        directory = run_directory.write(directory, written)
    tally = files.tally
    if submission.PREDICTIONS not in written:
        raise run_directory.unfinished(tally.failures, directory, written)
    if page and has_gold(split):
        from lmkbc.report.run import write_beside  # which draws figures

        write_beside(run, directory, split)
    if tally.failed:
        note(f"{tally.failures}; they are submitted as empty answers, and {directory / submission.MISSING} lists them")
    part = f"the first {len(queries)} of {len(every)}" if cut else f"{tally.queries}"
    note(
        f"{directory / (submission.PREDICTIONS if cut else submission.ARCHIVE)}: {part} queries, "
        f"{tally.objects} objects, {tally.empty} empty answers; {provenance['how']}; {seconds:.0f} s"
    )
    if below := provenance.get("below_precision"):
        note(
            f"in {len(below)} relations no confidence promises precision {precision:g}, so nothing is kept of them "
            f"({', '.join(below[:3])}{', ...' if len(below) > 3 else ''}; {directory / submission.MANIFEST} lists all)"
        )
    if tally.withheld:
        note(
            f"{tally.withheld} of the empty answers do not say that there is none: {directory / submission.WITHHELD} "
            "lists what was withheld"
        )
    if rules := tally.rules:
        why = ", ".join(f"{rule} {count}" for rule, count in rules.items())
        note(
            f"{sum(rules.values())} objects dropped ({why}): {tally.dropped} queries were left with none of those "
            "that were named, which is no abstention"
        )
