"""`lmkbc query`: SPARQL over a knowledge base."""

from __future__ import annotations

from typing import Any

from lmkbc.commands.terminal import note, progress, show_json, show_table
from lmkbc.commands.typed import made_from
from lmkbc.errors import counted
from lmkbc.kb.api.querying import query as query_base
from lmkbc.kb.query.result import DIGITS

EXAMPLE = "Example: lmkbc query rivers 'SELECT ?river ?country { ?river wdt:P17 ?country } LIMIT 5'"


@made_from(query_base)
def query(*, json: bool = False, **given: Any) -> None:
    """Answer a SPARQL query over the facts of a knowledge base. No server is asked."""
    with progress() as report:
        made = query_base(**given, progress=report)
    if given["out"] is not None:
        note(f"{given['out']}: {counted(len(made.rows), 'row')}")
    if json:
        show_json([dict(zip(made.columns, row, strict=True)) for row in made.rows])
    elif given["out"] is None:
        show_table(made.columns, made.rows, floats=DIGITS)
