"""`lmkbc submit`: a checked zip from any predictions file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lmkbc.api.scores import other_split
from lmkbc.commands.keywords import chosen_edition
from lmkbc.commands.terminal import note
from lmkbc.errors import InputError, counted
from lmkbc.files.atomic import write_bytes
from lmkbc.files.writable import check_file, check_replaced
from lmkbc.run import submission
from lmkbc.run.saved import SavedRun
from lmkbc.workspace import Workspace

EXAMPLE = "Example: lmkbc submit my-predictions.jsonl --edition 2023 --split test"


def submit(
    predictions: Annotated[Path, typer.Argument(help="Predictions file in the edition's JSONL format.")],
    split: str = "test",
    edition: str | None = None,
    out: Annotated[
        Path | None, typer.Option(help="Zip to write. Default: beside the predictions, with the same name.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Check the file or zip alone, and write nothing.")] = False,
    data: Path | None = None,
    workspace: Path | None = None,
    trust: bool = False,
) -> None:
    """Check a predictions file and zip it for CodaLab or Codabench. Each query of the split must occur once."""
    run = SavedRun.at(predictions)
    predictions = run.predictions
    edition = edition or run.text("edition")
    target = out or predictions.with_name(predictions.name.removesuffix(".gz").removesuffix(".jsonl") + ".zip")
    if not (check or out) and predictions.suffix == ".zip":
        raise InputError(f"{predictions} is a zip already: add --check to check it alone, or name another with --out")
    if not check:
        check_file(target, predictions)
        check_replaced(target, submission.is_archive, "zip that this command wrote")
    space = Workspace(workspace, data, trust=trust)
    chosen = chosen_edition(space, edition)
    if (made := run.text("split")) not in (None, chosen.split_named(split)):
        raise InputError(
            f"{run.path} is of {made}, not of {split}: make a run with 'lmkbc predict --split {split}', or add --split "
            f"{made} to check or zip this one"
        )
    queries = space.queries(chosen, split)
    try:
        zipped, unknown = submission.package(predictions, chosen, space.relations, queries)
    except InputError as error:
        raise other_split(space, predictions, chosen, split) or error from None
    dropped = f"; {counted(unknown, 'row')} for no query of the split left out" if unknown else ""
    asked = f"{counted(len(queries), 'row')} of {chosen.name} {chosen.split_named(split)}"
    if check:
        note(f"{predictions} can be submitted: {asked}{dropped}; nothing was written")
        return
    of_run = target.with_name(submission.MANIFEST).exists()
    if (out is None or of_run) and target.exists() and target.read_bytes() != zipped:
        raise InputError(f"{target} is there already and holds something else: name the zip with --out")
    write_bytes(target, zipped)
    note(f"{target}: {asked}, in order{dropped}")
