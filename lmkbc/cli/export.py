"""`lmkbc export`: a knowledge base in other formats."""

from __future__ import annotations

from typing import Any

from lmkbc.api.exporting import REVIEWED
from lmkbc.api.exporting import export as export_base
from lmkbc.cli.terminal import note, progress
from lmkbc.cli.typed import made_from
from lmkbc.errors import counted

EXAMPLE = "Example: lmkbc export rivers --format statements --out rivers.nt"


@made_from(export_base)
def export(**given: Any) -> None:
    """Write a knowledge base as triples, statement nodes, Wikidata's JSON, or QuickStatements for review."""
    with progress() as report:
        made = export_base(**given, progress=report)
    if given["format"] in REVIEWED:
        files = counted(made.count, "file")
        note(f"{made.path}: {files} to be checked by a person, none of them ready for upload: a model is no source")
    else:
        note(f"{made.path}: {counted(made.count, 'line')}")
    if made.unsure:
        them = "it" if made.unsure == 1 else "them"
        note(
            f"{counted(made.unsure, 'fact')} below confidence {given['least']:g} left out: --least 0 writes {them} too"
        )
