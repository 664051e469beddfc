"""Function `query`: SPARQL over a knowledge base."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from lmkbc.api.exporting import LEAST
from lmkbc.api.keywords import keywords
from lmkbc.errors import OptionError
from lmkbc.files.atomic import write_bytes
from lmkbc.files.tables import comma_separated
from lmkbc.files.writable import check_new
from lmkbc.kb.base.knowledge import Knowledge
from lmkbc.kb.export.exporter import ExportSettings
from lmkbc.kb.export.ntriples import OWN, checked_base
from lmkbc.progress import Report, silent
from lmkbc.session.options import KnowledgeDir

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class QueryResult:
    """Answer of a query. columns: the variables; "answer" for ASK; subject, predicate, object for triples.

    rows: a number, or a text without quotes, datatype and language; None if the variable has no value.
    """

    columns: Sequence[str]
    rows: Sequence[tuple[str | int | float | bool | None, ...]]

    def frame(self) -> pl.DataFrame:
        """Return the answer as a data frame. A column that holds numbers and texts is one of texts."""
        import polars as pl

        columns: dict[str, list[Any]] = {name: [row[at] for row in self.rows] for at, name in enumerate(self.columns)}
        for name, values in columns.items():
            if any(isinstance(value, str) for value in values):
                columns[name] = [None if value is None else str(value) for value in values]
        return pl.DataFrame(columns, strict=False)


@keywords
def query(
    knowledge: KnowledgeDir,
    sparql: Annotated[
        str,
        Meta(
            description="Query of SPARQL 1.1: SELECT, ASK, CONSTRUCT or DESCRIBE.",
            extra={"argument": True, "metavar": "QUERY"},
        ),
    ],
    *,
    least: Annotated[
        float, Meta(ge=0, le=1, description="Leave out facts with a smaller confidence. 0: ask all facts.")
    ] = LEAST,
    base: Annotated[str, Meta(description="Beginning of the IRIs of things without a QID.")] = OWN,
    out: Annotated[Path | str | None, Meta(description="New file to write the answer to, as CSV.")] = None,
    progress: Report = silent,
) -> QueryResult:
    """Answer a SPARQL query over the facts of a knowledge base. No server is asked.

    The facts are as `lmkbc export --format turtle` writes them, and its prefixes are declared. progress: callback for
    progress.

    InputError for a query with a fault, for an update, for SERVICE, and for a base that is damaged or not finished.
    """
    from lmkbc.kb.query.triple_store import answered, opened

    if not 0 <= least <= 1:
        raise OptionError("least", f"is {least}: give 0 to 1")
    checked_base(base)
    check_new(None if out is None else Path(out))
    facts = Knowledge(Path(knowledge), least, report=progress)
    settings = ExportSettings(base=base, date=facts.date, run=facts.run, known=None, batch=1)
    columns, rows = answered(opened(facts, settings, least), sparql, base)
    made = QueryResult(columns, [*rows])
    if out is not None:
        write_bytes(Path(out), comma_separated(made.frame()).encode(), new=True)
    return made
