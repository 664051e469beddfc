"""`lmkbc build`: from subjects to a knowledge base."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from lmkbc.build.build import Build, Plan, chosen
from lmkbc.build.classes import Classes
from lmkbc.build.directory import Directory
from lmkbc.build.manifest import started
from lmkbc.build.subjects import Subjects
from lmkbc.cli.run_options import RecipeOptions, ServerOptions, SourceOptions, opened
from lmkbc.cli.screen import note
from lmkbc.cli.spread import spread
from lmkbc.cli.terminal import progress
from lmkbc.errors import InputError, LmkbcError
from lmkbc.models.files import model_name, portable
from lmkbc.pipeline import inputs, selector_for

EXAMPLE = "Example: lmkbc build --subjects rivers.csv --edition 2023 --relation river-countries --out rivers"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("build", epilog=EXAMPLE)(spread(build))


def build(
    *,
    subjects: Annotated[Path, typer.Option(help="CSV, JSONL or Parquet: name, and where known id (QID) and class.")],
    out: Annotated[Path, typer.Option(help="Directory of the knowledge base: new, empty, or the build to go on with.")],
    relation: Annotated[
        list[str] | None, typer.Option("--relation", help="Ask this relation alone; repeatable. Else all.")
    ] = None,
    recipe_options: RecipeOptions,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many subjects.")] = None,
    any_thresholds: Annotated[
        bool, typer.Option("--any-thresholds", help="Use thresholds even where they were tuned on other data.")
    ] = False,
    source_options: SourceOptions,
    server_options: ServerOptions,
) -> None:
    """Build a knowledge base: facts of all subjects as Parquet, with confidences. A killed build goes on."""
    start = time.monotonic()
    run, recipe = opened(recipe_options, source_options, server_options)
    relations = chosen(run, relation or ())
    plan = Plan(Subjects.of(subjects, limit), relations, Classes(relations, run.workspace.relations.values()))
    for remark in plan.remarks():
        note(remark)
    if not plan.total:
        raise InputError(f"{subjects}: no subject is of a class that the relations ask about; name others")
    selector, provenance = selector_for(run, recipe, any_data=any_thresholds)
    about: dict[str, Any] = {
        "edition": run.edition.name,
        "system": recipe.name,
        "model": run.model and model_name(run.model),
        "recipe": portable(recipe.tables),
        "selection": provenance,
        "asked": list(relations),
        "limit": limit,
        "files": {subjects.name: plan.subjects.sha256, **inputs(run, recipe)},
    }
    directory = Directory(out)
    with directory.held(), progress() as report:
        whole = Build(run, recipe, selector, started(about, relations)).into(directory, plan, report)
    seconds = time.monotonic() - start
    counts = whole["counts"]
    note(
        f"{out}: {counts['facts']} facts of {plan.subjects.counts['subjects']} subjects, {counts['linked']} of them "
        f"linked; {counts['nothing']} of {counts['queries']} queries answered with nothing; {provenance['how']}; "
        f"{seconds:.0f} s"
    )
    if counts["failed"]:
        raise LmkbcError(
            f"{counts['failed']} of {counts['queries']} queries failed, which is no empty answer: {out / 'missing'} "
            "lists them; run the command again to ask them again"
        )
