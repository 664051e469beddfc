"""Function `export`: a knowledge base in other formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date as calendar
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from lmkbc.commands.keywords import keywords
from lmkbc.errors import OptionError
from lmkbc.kb.base.knowledge import Knowledge
from lmkbc.kb.export.exporter import Exporter, ExportSettings
from lmkbc.kb.export.left_out import ExportTally
from lmkbc.kb.export.ntriples import OWN, checked_base
from lmkbc.progress import Report, silent
from lmkbc.registry import EXPORTS
from lmkbc.session.options import KnowledgeDir, Trust, WorkspaceDir
from lmkbc.session.subset import names_of, own_names
from lmkbc.workspace import Workspace

LEAST, BATCH = 0.5, 250


@dataclass(frozen=True)
class Export:
    """An exported knowledge base: its file, or its directory of files for review.

    count: number of lines, of files for review, or of rows of Parquet. facts: number of facts that were written.
    left_out: number of facts that were left out, by reason, those of `Knowledge.left_out` included.
    """

    path: Path
    count: int
    facts: int
    left_out: Mapping[str, int]


@keywords
def export(
    knowledge: KnowledgeDir,
    format: Annotated[  # noqa: A002 -- the name of the option
        str, Meta(description=f"Format: {', '.join(EXPORTS)}.", extra={"metavar": "FORMAT"})
    ],
    out: Annotated[Path | str, Meta(description="New file to write. For quickstatements, a new or empty directory.")],
    *,
    relation: Annotated[
        str | Sequence[str] | None,
        Meta(description="Only facts of this relation. Repeatable.", extra={"flags": ("--relation", "-r")}),
    ] = None,
    limit: Annotated[int | None, Meta(ge=1, description="Only facts of the first N subjects.")] = None,
    least: Annotated[
        float, Meta(ge=0, le=1, description="Leave out facts with a smaller confidence. 0: write all facts.")
    ] = LEAST,
    reviewed: Annotated[
        bool | None,
        Meta(
            description="Write only facts that a person decided, or only others. Default: all; for quickstatements, "
            "only decided ones.",
            extra={"flags": ("--reviewed/--unreviewed",)},
        ),
    ] = None,
    quoted: Annotated[
        bool | None,
        Meta(
            description="Write only facts that a text supports with a quote, or only others. Default: all.",
            extra={"flags": ("--quoted/--unquoted",)},
        ),
    ] = None,
    base: Annotated[str, Meta(description="Beginning of the IRIs of things without a QID.")] = OWN,
    date: Annotated[
        str | None,
        Meta(
            description="Date of the statements, as in 2026-11-22. Default: the day of the build.",
            extra={"metavar": "DAY"},
        ),
    ] = None,
    known: Annotated[
        Path | str | None,
        Meta(
            description="Facts that Wikidata has, in a form that 'lmkbc audit --known' reads, or what its --out wrote."
        ),
    ] = None,
    batch: Annotated[int, Meta(ge=1, description="Statements per file of quickstatements.")] = BATCH,
    workspace: WorkspaceDir = None,
    trust: Trust = False,
    progress: Report = silent,
) -> Export:
    """Write a knowledge base as a table, a database, a graph, RDF, Wikidata's JSON, QuickStatements, or a worklist.

    QuickStatements propose the facts that are new beside `known`: those that a person decided, with their sources; with
    reviewed=False the others, which are for review. Those that contradict it, and those that it does not cover, are in
    files of their own. A worklist has what is missing, contradicts or refines. workspace: for other names of a
    relation. progress: callback for progress.

    InputError for wrong input, and for a base that is damaged or not finished.
    """
    exporter: Exporter = EXPORTS.get(format)
    for option, value, is_right, bounds in (
        ("least", least, 0 <= least <= 1, "0 to 1"),
        ("limit", limit, limit is None or limit >= 1, "at least 1"),
        ("batch", batch, batch >= 1, "at least 1"),
    ):
        if not is_right:
            raise OptionError(option, f"is {value}: give {bounds}")
    checked_base(base)
    try:
        day = None if date is None else calendar.fromisoformat(date).isoformat()
    except ValueError:
        raise OptionError("date", f"is {date!r}: give a day as in 2026-11-22") from None
    place = Path(out)
    chosen = own_names(Workspace(workspace, trust=trust), names_of(relation))
    reviewed = exporter.reviewed if reviewed is None else reviewed
    facts = Knowledge(
        Path(knowledge), least, chosen=chosen, limit=limit, reviewed=reviewed, quoted=quoted, report=progress
    )
    exporter.check(facts)
    tally = ExportTally()
    settings = ExportSettings(
        base=base,
        date=facts.date if day is None else day,
        run=facts.run,
        known=None if known is None else Path(known),
        batch=batch,
    )
    count = exporter.write(facts, place, tally, settings)
    return Export(place, count, tally.facts, facts.left_out | dict(sorted(tally.left_out.items())))
