"""`lmkbc store`: the stored answers of models: statistics, export and deletion."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from lmkbc.commands.terminal import note, show_json, show_table, tame
from lmkbc.errors import InputError, counted
from lmkbc.files.atomic import write_bytes
from lmkbc.files.writable import check_new
from lmkbc.models.answers import Store
from lmkbc.models.store_place import Place, default_place

app = typer.Typer(no_args_is_help=True, help="Show, export and prune stored answers of models.", rich_markup_mode=None)
OfModel = Annotated[str | None, typer.Option("--model", help="Only this model's answers.")]


@app.command("stats", epilog="Example: lmkbc store stats")
def stats(store: Place | None = None, json: bool = False) -> None:
    """Count answers, prompts and tokens per model."""
    rows = _open(store).stats()
    if json:
        show_json(rows)
    elif rows:
        show_table([*rows[0]], [[*row.values()] for row in rows])
    else:
        note("the store is empty")


@app.command("export", epilog="Example: lmkbc store export --out answers.jsonl")
def export(
    store: Place | None = None,
    model: OfModel = None,
    out: Annotated[Path | None, typer.Option(help="The file to write; default: standard output.")] = None,
) -> None:
    """Write every answer with its call and prompt, one JSON line each."""
    chosen = default_place(store)
    check_new(out, chosen if isinstance(chosen, Path) else None)
    lines = _open(store).export(model)
    if out is not None:
        write_bytes(out, b"".join(line + b"\n" for line in lines), new=True)
    else:
        for line in lines:
            sys.stdout.buffer.write(tame(line.decode()).encode() + b"\n")
        sys.stdout.flush()


@app.command("prune", epilog="Example: lmkbc store prune --before 2026-01-01")
def prune(
    store: Place | None = None,
    model: OfModel = None,
    before: Annotated[str | None, typer.Option(help="Only answers given before this date (YYYY-MM-DD, UTC).")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Drop every answer.")] = False,
) -> None:
    """Drop answers: of a model, from before a date, or all."""
    if not (everything or model or before):
        raise InputError("prune needs to know what to drop: --model, --before or --all")
    if before and not re.fullmatch(r"\d{4}-\d\d-\d\d", before):
        raise InputError(f"--before is {before!r}: give a date as YYYY-MM-DD")
    opened = _open(store)
    note(f"{opened.place}: {counted(opened.prune(model=model, before=before), 'answer')} dropped")


def _open(place: Place | None) -> Store:
    chosen = default_place(place)
    if isinstance(chosen, Path) and not chosen.is_file():
        raise InputError(f"there is no store at {chosen}: name one with --store, or run a system that asks a model")
    return Store(chosen)
