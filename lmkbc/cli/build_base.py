"""`lmkbc build`: from subjects to a knowledge base."""

from __future__ import annotations

import os
import time
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated, Unpack

import typer

from lmkbc.api.building import KnowledgeBase, estimate_build
from lmkbc.api.building import build as make_base
from lmkbc.cli.dry_run import show_estimate
from lmkbc.cli.terminal import note, progress
from lmkbc.errors import InputError, LmkbcError, check_known, counted
from lmkbc.kb.build.engine import Engine
from lmkbc.run.options import RunOptions

ENGINES = ("process", "ray")
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_BACKEND_LOG_LEVEL": "fatal", "RAY_DEDUP_LOGS_SKIP_REGEX": ".*"}
"""Ray's variables at import: no usage statistics are sent, and logs go to Ray's own files."""
EXAMPLE = "Example: lmkbc build --subjects rivers.csv --edition 2023 --relation river-countries --out rivers"


def build(
    *,
    subjects: Annotated[
        Path,
        typer.Option(help="Subjects (CSV, JSONL or Parquet) with a column name, and optionally id (QID) and class."),
    ],
    out: Annotated[
        Path, typer.Option(help="Directory of the knowledge base: new, empty, or an unfinished build to continue.")
    ],
    relation: Annotated[
        list[str] | None,
        typer.Option(
            "--relation", help="Ask only this relation. Repeatable. Default: all relations of a subject's class."
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N subjects.")] = None,
    grow: Annotated[
        int, typer.Option(min=0, metavar="DEPTH", help="Ask about the objects of facts too, N levels deep.")
    ] = 0,
    budget: Annotated[int | None, typer.Option(min=1, help="With --grow: at most N subjects in all.")] = None,
    novelty: Annotated[
        float,
        typer.Option(
            min=0, max=1, help="With --grow: stop when a smaller share of a level's entities is new, as in 0.1."
        ),
    ] = 0.0,
    grow_by: Annotated[
        str,
        typer.Option(
            help="With --grow: level: breadth first. value: first the subjects that promise the most right facts per "
            "token, and each relation until its newest facts fall below --precision, else 0.5."
        ),
    ] = "level",
    precision: float | None = None,
    least: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Smallest confidence of a fact, as in 0.5. Default: by --precision, else 0.7 of probabilities.",
        ),
    ] = None,
    dry_run: bool = False,
    any_thresholds: bool = False,
    untuned: bool = False,
    engine: Annotated[
        str, typer.Option(help="process: one process. ray: workers of Ray Data, on this machine or a cluster.")
    ] = "process",
    address: Annotated[
        str | None, typer.Option(help="With --engine ray: the head of the cluster, HOST:PORT or auto.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="With --engine ray: number of workers. Default: one per processor.")
    ] = None,
    gpus: Annotated[
        float, typer.Option(min=0, help="With --engine ray: accelerators per worker, such as 1 or 0.5.")
    ] = 0.0,
    **given: Unpack[RunOptions],
) -> None:
    """Build a knowledge base: facts of all subjects as Parquet, with confidences. A killed build can be resumed."""
    start = time.monotonic()
    if dry_run:
        show_estimate(partial(estimate_build, subjects, out, relation=relation, limit=limit, **given))
        if grow:
            note("what --grow asks beyond the first level is not counted: it depends on what is found")
        return
    answering = _engine(engine, address, workers, gpus)
    with progress() as report:
        base = make_base(
            subjects,
            out,
            relation=relation,
            limit=limit,
            grow=grow,
            budget=budget,
            novelty=novelty,
            grow_by=grow_by,
            any_thresholds=any_thresholds,
            untuned=untuned,
            precision=precision,
            least=least,
            engine=answering,
            progress=report,
            **given,
        )
    _show(base, time.monotonic() - start)


def _show(base: KnowledgeBase, seconds: float) -> None:
    """Show the counts of a build. LmkbcError if queries failed."""
    counts, selection, where = base.counts, base.manifest["inputs"]["selection"], base.directory
    note(
        f"{where}: {counts['facts']} facts of {counts['subjects']} subjects, {counts['linked']} of them "
        f"linked; {counts['nothing']} of {counts['queries']} queries answered with nothing; {selection['how']}; "
        f"{seconds:.0f} s"
    )
    if stated := counts.get("stated_by_labels"):
        note(
            f"{where}: facts that labelled rows state: {stated} of {counts['facts']}; they can be read there, so they "
            "are no knowledge of a model; --learn-from none leaves them out"
        )
    if below := selection.get("below_precision"):
        note(
            f"nothing is kept of {len(below)} relations, which promise no precision of {selection['precision']:g}: "
            f"{', '.join(below)}"
        )
    elif unsure := base.unsure:
        note(f"{where}: {counted(len(unsure), 'relation')} without a fact that is sure enough: {', '.join(unsure)}")
    if removed := base.manifest.get("removed"):
        reasons = ", ".join(f"{reason} {count}" for reason, count in removed.items())
        note(f"{where}: facts that repeat or contradict surer ones, removed by reason: {reasons}")
    if graph := base.manifest.get("graph"):
        counts_by_depth = graph.get("by_depth") or [level["subjects"] for level in graph["levels"]]
        levels = ", ".join(map(str, counts_by_depth))
        note(f"{where}: {graph['entities']} entities; subjects by depth {levels}; it ended by: {graph['stopped']}")
    if limit := base.limit:
        note(
            f"{where}: {limit}: {base.failed} of {counts['queries']} queries were not asked; the same command with "
            "a higher limit asks them"
        )
    elif base.failed:
        raise LmkbcError(
            f"{base.failed} of {counts['queries']} queries failed, which is no empty answer: {where / 'missing'} "
            "lists them; run the command again to ask them again"
        )


def _engine(name: str, address: str | None, workers: int | None, gpus: float) -> AbstractContextManager[Engine | None]:
    """Return the workers, None for this process. InputError for an engine that is unknown or not installed."""
    check_known(name, ENGINES, f"--engine is {name!r}")
    if name == "process":
        if address is not None or workers is not None or gpus:
            raise InputError("--address, --workers and --gpus are Ray's: give --engine ray too")
        return nullcontext()
    for variable, value in QUIET.items():
        os.environ.setdefault(variable, value)
    try:
        from lmkbc.kb.build.ray_engine import connected
    except ImportError:
        raise InputError("--engine ray needs Ray: install lmkbc[scale]") from None
    return connected(address, workers, gpus)
