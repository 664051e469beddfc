"""`lmkbc query`: SPARQL over a knowledge base."""

from __future__ import annotations

from typing import Any

from lmkbc.commands.terminal import note, progress, show_json, show_table
from lmkbc.commands.typed import made_from
from lmkbc.errors import counted
from lmkbc.kb.api.querying import query as query_base
from lmkbc.kb.query.result import DIGITS

EXAMPLE = (
    "Example: lmkbc query rivers 'SELECT ?river ?country { ?river wdt:P17 ?country } LIMIT 5'; a relation of your own "
    "that is called depth is ownt:depth"
)


@made_from(query_base)
def query(*, json: bool = False, **given: Any) -> None:
    """Answer a SPARQL query over the facts of a knowledge base. No server is asked."""
    with progress() as report:
        made = query_base(**given, progress=report)
    if made.unsure:
        facts = counted(made.unsure, "fact has", "facts have")
        note(f"{facts} a confidence below {given['least']:g} and were not asked; --least 0 asks all")
    if not any(cell for row in made.rows for cell in row):
        each = ", ".join(f"{name} is {written}" for name, written in made.relations.items())
        note(f"nothing is found; the relations of {given['knowledge']} are written so in a query: {each}")
    if given["out"] is not None:
        note(f"{given['out']}: {counted(len(made.rows), 'row')}")
    if json:
        show_json([dict(zip(made.columns, row, strict=True)) for row in made.rows])
    elif given["out"] is None:
        show_table(made.columns, made.rows, floats=DIGITS)
