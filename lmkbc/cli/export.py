"""`lmkbc export`: a knowledge base in other formats."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lmkbc.api.exporting import BATCH, LEAST, REVIEWED, Format
from lmkbc.api.exporting import export as export_base
from lmkbc.cli.terminal import note, progress
from lmkbc.errors import counted
from lmkbc.kb.export.ntriples import OWN

EXAMPLE = "Example: lmkbc export rivers --format statements --out rivers.nt"


def export(
    knowledge: Annotated[
        Path, typer.Argument(metavar="DIR", help="Directory of a knowledge base, as 'lmkbc build' writes it.")
    ],
    format_: Annotated[Format, typer.Option("--format", metavar="FORMAT", help=f"Format: {', '.join(Format)}.")],
    out: Annotated[Path, typer.Option(help="New file to write. For quickstatements, a new or empty directory.")],
    relation: Annotated[
        list[str] | None, typer.Option("--relation", "-r", help="Only facts of this relation. Repeatable.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only facts of the first N subjects.")] = None,
    least: Annotated[
        float, typer.Option(min=0, max=1, help="Leave out facts with a smaller confidence. 0: write all facts.")
    ] = LEAST,
    base: Annotated[str, typer.Option(help="Beginning of the IRIs of things without a QID.")] = OWN,
    day: Annotated[
        str | None,
        typer.Option("--date", help="Date of the statements, as in 2026-11-22. Default: the day of the build."),
    ] = None,
    known: Annotated[
        Path | None,
        typer.Option(help="Facts that Wikidata has: a table of subject, property, object, or truthy N-Triples."),
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Statements per file of quickstatements.")] = BATCH,
) -> None:
    """Write a knowledge base as triples, statement nodes, Wikidata's JSON, or QuickStatements for review."""
    with progress() as report:
        made = export_base(
            knowledge,
            format_,
            out,
            relation=relation,
            limit=limit,
            least=least,
            base=base,
            date=day,
            known=known,
            batch=batch,
            progress=report,
        )
    if format_ in REVIEWED:
        files = counted(made.count, "file")
        note(f"{out}: {files} to be checked by a person, none of them ready for upload: a model is no source")
    else:
        note(f"{out}: {counted(made.count, 'line')}")
    if made.unsure:
        them = "it" if made.unsure == 1 else "them"
        note(f"{counted(made.unsure, 'fact')} below confidence {least:g} left out: --least 0 writes {them} too")
