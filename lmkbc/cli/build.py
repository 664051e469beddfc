"""`lmkbc build`: from subjects to a knowledge base."""

from __future__ import annotations

import os
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from lmkbc.build.build import Build, Plan, chosen
from lmkbc.build.classes import Classes
from lmkbc.build.directory import Directory
from lmkbc.build.engine import Engine
from lmkbc.build.manifest import started
from lmkbc.build.subjects import Subjects
from lmkbc.cli.run_options import RecipeOptions, ServerOptions, SourceOptions, opened
from lmkbc.cli.screen import note
from lmkbc.cli.spread import spread
from lmkbc.cli.terminal import progress
from lmkbc.errors import InputError, LmkbcError, did_you_mean
from lmkbc.models.files import model_name, portable
from lmkbc.pipeline import inputs, selector_for

ENGINES = ("process", "ray")
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
    engine: Annotated[
        str, typer.Option(help="process, or ray: workers of Ray Data, here or on a cluster.")
    ] = "process",
    address: Annotated[
        str | None, typer.Option(help="Of a Ray cluster's head, HOST:PORT or auto; else workers of this machine.")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Of Ray; default: one per processor.")] = None,
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
    with directory.held(), _engine(engine, address, workers) as chosen_engine, progress() as report:
        whole = Build(run, recipe, selector, started(about, relations), engine=chosen_engine).into(
            directory, plan, report
        )
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


def _engine(name: str, address: str | None, workers: int | None) -> AbstractContextManager[Engine | None]:
    """What answers, if not this process. InputError for an engine that is not known or not installed."""
    if name not in ENGINES:
        raise InputError(f"--engine is {name!r}: {did_you_mean(name, ENGINES)}")
    if name == "process":
        if address is not None or workers is not None:
            raise InputError("--address and --workers are Ray's: give --engine ray too")
        return nullcontext()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read when it is imported
    try:
        from lmkbc.build.ray_engine import connected
    except ImportError:
        raise InputError("--engine ray needs Ray: install lmkbc[scale]") from None
    return connected(address, workers)
