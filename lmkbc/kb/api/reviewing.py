"""Function `review`: decisions of persons become part of a knowledge base."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from lmkbc.commands.keywords import keywords
from lmkbc.kb.audit.decisions import ReviewedBase, decide
from lmkbc.session.options import KnowledgeDir


@keywords
def review(
    knowledge: KnowledgeDir,
    labels: Annotated[
        Path | str | None,
        Meta(
            description="Labels: what a page of 'lmkbc audit' saved, or a table (CSV, JSONL) with relation, subject, "
            "object and label. Without it, the decisions of the base are counted.",
            extra={"argument": True, "metavar": "FILE"},
        ),
    ] = None,
    *,
    reviewer: Annotated[
        str | None,
        Meta(
            description="Name of the person, for rows that name none. Default: your login.", extra={"metavar": "NAME"}
        ),
    ] = None,
) -> ReviewedBase:
    """Make decisions of persons part of a knowledge base: a right object is a fact, and a wrong one is none.

    They stand in a file beside the tables, which every later build keeps. The same labels again change nothing.

    InputError for labels that cannot be decisions, with file, row and field.
    """
    return decide(Path(knowledge), None if labels is None else Path(labels), reviewer)
