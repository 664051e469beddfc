"""Function `query`: SPARQL over a knowledge base."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from lmkbc.commands.keywords import keywords
from lmkbc.errors import OptionError
from lmkbc.files.places import placed
from lmkbc.files.writable import check_new
from lmkbc.kb.api.exporting import LEAST
from lmkbc.kb.base.knowledge import Knowledge
from lmkbc.kb.export.ntriples import OWN, checked_base
from lmkbc.kb.query.result import QueryResult
from lmkbc.progress import Report, silent
from lmkbc.session.options import KnowledgeDir


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

    The facts are as `lmkbc export --format turtle` writes them, and its prefixes are declared. A relation of property
    P47 is wdt:P47, and one of your own that is called price is ownt:price. progress: callback for progress.

    InputError for a query with a fault, for an update, for SERVICE, and for a base that is damaged or not finished.
    """
    from lmkbc.kb.query.triple_store import answered

    if not 0 <= least <= 1:
        raise OptionError("least", f"is {least}: give 0 to 1")
    place = placed(out)
    check_new(place)
    made = answered(Knowledge(Path(knowledge), least, report=progress), sparql, least, checked_base(base))
    if place is not None:
        made.write(place)
    return made
