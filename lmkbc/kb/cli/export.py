"""`lmkbc export`: a knowledge base in other formats."""

from __future__ import annotations

from typing import Any

from lmkbc.commands.terminal import note, progress
from lmkbc.commands.typed import made_from
from lmkbc.errors import counted
from lmkbc.kb.api.exporting import export as export_base
from lmkbc.kb.base.knowledge import UNSURE
from lmkbc.registry import EXPORTS

EXAMPLE = "Example: lmkbc export rivers --format statements --out rivers.nt"


@made_from(export_base)
def export(**given: Any) -> None:
    """Write a knowledge base as a table, a database, a graph, RDF, Wikidata's JSON, or QuickStatements."""
    with progress() as report:
        made = export_base(**given, progress=report)
    exporter = EXPORTS.get(given["format"])
    within = f" in {counted(made.count, exporter.counted)}" if exporter.counted else ""
    note(f"{made.path}: {counted(made.facts, 'fact')}{within}{exporter.remark}")
    if made.left_out:
        reasons = ", ".join(f"{reason} {count}" for reason, count in made.left_out.items())
        hint = "; --least 0 writes facts of any confidence" if UNSURE.format(given["least"]) in made.left_out else ""
        note(f"{made.path}: {counted(sum(made.left_out.values()), 'fact')} left out, by reason: {reasons}{hint}")
