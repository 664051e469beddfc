"""`lmkbc build`: from subjects to a knowledge base."""

from __future__ import annotations

import os
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from lmkbc import run_directory
from lmkbc.build.build import Build, Plan, chosen
from lmkbc.build.classes import Classes
from lmkbc.build.directory import Directory
from lmkbc.build.engine import Engine
from lmkbc.build.growth import Bounds, Growth
from lmkbc.build.manifest import inputs_of, started
from lmkbc.build.subjects import Subjects
from lmkbc.cli import options
from lmkbc.cli.foresight import show_forecast
from lmkbc.cli.run_options import RecipeOptions, ServerOptions, SourceOptions, opened
from lmkbc.cli.screen import note
from lmkbc.cli.spread import spread
from lmkbc.cli.terminal import progress
from lmkbc.errors import InputError, LmkbcError, did_you_mean
from lmkbc.forecast import forecast
from lmkbc.link.index import AliasIndex
from lmkbc.pipeline import selector_for

ENGINES = ("process", "ray")
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_BACKEND_LOG_LEVEL": "fatal", "RAY_DEDUP_LOGS_SKIP_REGEX": ".*"}
"""What Ray reads when it is imported: it reports to nobody, and its log goes to its own files, not among results."""
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
    grow: Annotated[
        int, typer.Option(min=0, metavar="DEPTH", help="Ask about what the facts name in turn, so many levels deep.")
    ] = 0,
    budget: Annotated[int | None, typer.Option(min=1, help="With --grow: at most so many subjects in all.")] = None,
    novelty: Annotated[
        float, typer.Option(min=0, max=1, help="With --grow: end once a smaller share of a level's entities is new.")
    ] = 0.0,
    precision: options.Precision = None,
    dry_run: options.DryRun = False,
    any_thresholds: Annotated[
        bool, typer.Option("--any-thresholds", help="Use thresholds even where they were tuned on other data.")
    ] = False,
    engine: Annotated[
        str, typer.Option(help="process: this one; ray: workers of Ray Data, on this machine or on a cluster.")
    ] = "process",
    address: Annotated[
        str | None, typer.Option(help="With --engine ray: the cluster's head, HOST:PORT or auto.")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="With --engine ray; default: one per processor.")] = None,
    gpus: Annotated[
        float, typer.Option(min=0, help="With --engine ray: accelerators of each worker, such as 1 or 0.5.")
    ] = 0.0,
    source_options: SourceOptions,
    server_options: ServerOptions,
) -> None:
    """Build a knowledge base: facts of all subjects as Parquet, with confidences. A killed build goes on."""
    start = time.monotonic()
    run, recipe = opened(recipe_options, source_options, server_options)
    relations = chosen(run, relation or ())
    found = Subjects.of(subjects, limit)
    plan = Plan(found, relations, Classes(relations, run.workspace.relations.values()))
    bounds = Bounds(depth=grow, budget=budget, novelty=novelty)
    by_own = {one.name: one for one in relations.values()}
    growth = Growth(bounds, plan.classes, by_own, AliasIndex(run.index) if grow and run.index else None)
    for remark in (*found.remarks, *plan.remarks()):
        note(remark)
    if not plan.total:
        raise InputError(f"{subjects}: no subject is of a class that the relations ask about; name others")
    selector, provenance = selector_for(run, recipe, any_data=any_thresholds, precision=precision)
    if dry_run:
        queries = (ask.query for ask in plan.asks())
        timings = run_directory.timings(run.edition.name, recipe.name, out)
        with progress() as report:
            foreseen = forecast(run, recipe, queries, timings, report)
        show_forecast(foreseen)
        if grow:
            note("what --grow asks beyond the first level is not counted: it depends on what is found")
        return
    about = {
        **inputs_of(run, recipe, provenance, relations),
        "limit": limit,
        "grow": asdict(bounds) if grow else None,
        "subjects": {"sha256": found.sha256, **found.counts},
    }
    directory = Directory(out)
    begun = started(about, relations)
    with directory.held(), _engine(engine, address, workers, gpus) as opened_engine, progress() as report:
        made = Build(run, recipe, selector, begun, engine=opened_engine)
        whole = made.into(directory, plan, growth, report)
    seconds = time.monotonic() - start
    counts = whole["counts"]
    note(
        f"{out}: {counts['facts']} facts of {counts['subjects']} subjects, {counts['linked']} of them "
        f"linked; {counts['nothing']} of {counts['queries']} queries answered with nothing; {provenance['how']}; "
        f"{seconds:.0f} s"
    )
    if below := provenance.get("below_precision"):
        note(
            f"nothing is kept of {len(below)} relations, which promise no precision of {precision:g}: "
            f"{', '.join(below)}"
        )
    if graph := whole.get("graph"):
        levels = ", ".join(f"{level['subjects']}" for level in graph["levels"])
        note(f"{out}: {graph['entities']} entities; subjects by depth {levels}; it ended by: {graph['stopped']}")
    if counts["failed"]:
        raise LmkbcError(
            f"{counts['failed']} of {counts['queries']} queries failed, which is no empty answer: {out / 'missing'} "
            "lists them; run the command again to ask them again"
        )


def _engine(name: str, address: str | None, workers: int | None, gpus: float) -> AbstractContextManager[Engine | None]:
    """What answers, if not this process. InputError for an engine that is not known or not installed."""
    if name not in ENGINES:
        raise InputError(f"--engine is {name!r}: {did_you_mean(name, ENGINES)}")
    if name == "process":
        if address is not None or workers is not None or gpus:
            raise InputError("--address, --workers and --gpus are Ray's: give --engine ray too")
        return nullcontext()
    for variable, value in QUIET.items():
        os.environ.setdefault(variable, value)
    try:
        from lmkbc.build.ray_engine import connected
    except ImportError:
        raise InputError("--engine ray needs Ray: install lmkbc[scale]") from None
    return connected(address, workers, gpus)
