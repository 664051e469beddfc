"""A folder of files for review: what is new as QuickStatements, and what contradicts or is not covered as tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from lmkbc.files.atomic import staged
from lmkbc.files.tables import comma_separated
from lmkbc.kb.audit.known import Mark, marked_by
from lmkbc.kb.base.knowledge import FactRow, Knowledge
from lmkbc.kb.export.exporter import ReviewExporter
from lmkbc.kb.export.left_out import ExportTally
from lmkbc.kb.export.quickstatements import NOTICE, REVIEW, Proposal, batches, proposal
from lmkbc.kinds.kind import LeftOutError

COLUMNS = {
    **dict.fromkeys("relation property subject subject_id object object_id literal".split(), pl.String),
    "confidence": pl.Float64,
    **dict.fromkeys(("model", "known"), pl.String),
}
"""Columns of facts that are no proposals. known: what is known in their place."""
ASIDE = {Mark.CONTRADICTING: "contradicting.csv", Mark.UNCOVERED: "not-covered.csv"}
"""Mark -> file with facts that are no proposals."""
OTHERS = {
    Mark.KNOWN: "known already",
    Mark.CONTRADICTING: f"another value is known, or that there is none ({ASIDE[Mark.CONTRADICTING]} lists them)",
    Mark.UNCOVERED: f"what --known names does not cover them ({ASIDE[Mark.UNCOVERED]} lists them)",
}
"""Mark -> why a fact is no proposal."""


def write(
    base: Knowledge,
    out: Path,
    known: Path,
    size: int,
    tally: ExportTally,
    exporter: ReviewExporter,
) -> int:
    """Write the facts of a base, and return the number of files of new ones.

    known: what is known. size: statements per file.
    """
    mark_of, files = marked_by(known, base), 0
    aside: dict[Mark, list[tuple[Any, ...]]] = {mark: [] for mark in ASIDE}
    with staged(out) as stage:

        def proposed(fact: FactRow) -> Proposal:
            made, marked = proposal(fact), mark_of(fact)
            if marked.mark is Mark.NEW:
                return made
            if marked.mark in aside:
                about = fact.relation, fact.about.property, fact.subject, fact.subject_id
                values = fact.object, fact.object_id, fact.literal, fact.confidence, fact.model
                aside[marked.mark].append((*about, *values, "; ".join(sorted(marked.known))))
            raise LeftOutError(OTHERS[marked.mark])

        (stage / NOTICE).write_text(REVIEW, encoding="utf-8")
        for batch in batches(tally.written(base.facts(), proposed), size):
            files += 1
            (stage / f"review-{files:05d}.{exporter.ending}").write_text(exporter.form(batch), encoding="utf-8")
        for mark, rows in aside.items():
            frame = pl.DataFrame(rows, COLUMNS, orient="row")
            (stage / ASIDE[mark]).write_text(comma_separated(frame), encoding="utf-8")
    return files
