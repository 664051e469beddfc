"""`lmkbc export`: a knowledge base in other formats."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from lmkbc.cli.terminal import note, progress
from lmkbc.errors import InputError, counted
from lmkbc.files.atomic import staged, writing
from lmkbc.files.writable import check_directory, check_new
from lmkbc.kb.build.knowledge import Knowledge
from lmkbc.kb.export import quickstatements, wikidata_json
from lmkbc.kb.export.ntriples import OWN, Triples, checked_base

EXAMPLE = "Example: lmkbc export rivers --format statements --out rivers.nt"


class Format(StrEnum):
    """Format of an exported knowledge base."""

    NTRIPLES = "ntriples"
    STATEMENTS = "statements"
    WIKIDATA_JSON = "wikidata-json"
    QUICKSTATEMENTS = "quickstatements"
    QUICKSTATEMENTS_CSV = "quickstatements-csv"


REVIEWED = {
    Format.QUICKSTATEMENTS: ("txt", quickstatements.commands),
    Format.QUICKSTATEMENTS_CSV: ("csv", quickstatements.table),
}
"""Format for review -> ending of its files, and function that formats a batch."""


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
    ] = 0.5,
    base: Annotated[str, typer.Option(help="Beginning of the IRIs of things without a QID.")] = OWN,
    day: Annotated[
        str | None,
        typer.Option("--date", help="Date of the statements, as in 2026-11-22. Default: the day of the build."),
    ] = None,
    known: Annotated[
        Path | None,
        typer.Option(help="Facts that Wikidata has: a table of subject, property, object, or truthy N-Triples."),
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Statements per file of quickstatements.")] = 250,
) -> None:
    """Write a knowledge base as triples, statement nodes, Wikidata's JSON, or QuickStatements for review."""
    base, day = checked_base(base), None if day is None else _day(day)
    with progress() as report:
        source = Knowledge(knowledge, least, chosen=relation or (), limit=limit, report=report)
        if format_ in REVIEWED:
            summary = _review(source, out, format_, known, batch)
        else:
            summary = _written(source, out, format_, Triples(base, source.date if day is None else day, source.run))
    note(summary)
    if source.unsure:
        them = "it" if source.unsure == 1 else "them"
        note(f"{counted(source.unsure, 'fact')} below confidence {least:g} left out: --least 0 writes {them} too")


def _written(source: Knowledge, out: Path, format_: Format, triples: Triples) -> str:
    """Write one file, and return a summary."""
    check_new(out)
    if format_ is Format.WIKIDATA_JSON:
        entities = filter(None, map(wikidata_json.entity, source.by_subject()))
        lines: Iterator[str] = wikidata_json.lines(entities)
    else:
        write = triples.truthy if format_ is Format.NTRIPLES else triples.statement
        lines = (line for fact in source.facts() for line in write(fact))
    count = 0
    with writing(out) as file:
        for line in lines:
            file.write(line.encode())
            count += 1
    return f"{out}: {counted(count, 'line')}"


def _day(given: str) -> str:
    try:
        return date.fromisoformat(given).isoformat()
    except ValueError:
        raise InputError(f"--date is {given!r}: give a day as in 2026-11-22") from None


def _review(source: Knowledge, out: Path, format_: Format, known: Path | None, size: int) -> str:
    """Write files for review, and return a summary."""
    if known is None:
        raise InputError(
            "--format quickstatements writes only facts that Wikidata lacks: give those that it has with --known FILE"
        )
    check_directory(out)
    if out.is_dir() and any(out.iterdir()):
        raise InputError(f"--out {out} holds files already: name a directory that is new or empty")
    there = quickstatements.read_known(known, {about.property: about for about in source.relations.values()})
    files, (ending, write) = 0, REVIEWED[format_]
    with staged(out) as stage:
        (stage / quickstatements.NOTICE).write_text(quickstatements.REVIEW, encoding="utf-8")
        for batch in quickstatements.batches(quickstatements.proposals(source.facts(), there), size):
            files += 1
            (stage / f"review-{files:05d}.{ending}").write_text(write(batch), encoding="utf-8")
    written = counted(files, "file")
    return f"{out}: {written} to be checked by a person, none of them ready for upload: a model is no source"
