"""A worklist for editors: statements that Wikidata lacks, contradicts, or has less precisely, the likeliest first.

A row has the source and the quote of a person's decision, where there is one. Column `expected` is the probability that
the fact is right, after recalibration by what is known. It is 1 if a person decided so.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from lmkbc.files.tables import comma_separated
from lmkbc.kb.audit.known import Mark, MarkedFact, marked_by
from lmkbc.kb.audit.precision import COLUMNS, KnownCounts, compared_rows, listed
from lmkbc.kb.base.fact_row import FactRow
from lmkbc.kb.base.knowledge import Knowledge
from lmkbc.kb.base.schemas import frames
from lmkbc.kb.export.exporter import Exporter, ExportSettings
from lmkbc.kb.export.left_out import ExportTally
from lmkbc.kinds.kind import LeftOutError

NEED = "worklist has only facts that Wikidata lacks or has otherwise"
MISSING = "missing"
"""Word of the list for a fact that is new."""
OTHERS = {Mark.KNOWN: "known already", Mark.UNCOVERED: "what --known names does not cover them"}
"""Mark -> why a fact is no work."""


def _pieces(base: Knowledge, tally: ExportTally, settings: ExportSettings) -> Iterator[str]:
    mark_of, counts = marked_by(settings.known, base, NEED), KnownCounts()

    def work(fact: FactRow) -> MarkedFact:
        marked = mark_of(fact)
        if not fact.reviewed_by:  # a decision says nothing of confidences
            (marked,) = counts.counted([marked])
        if marked.mark in OTHERS:
            raise LeftOutError(OTHERS[marked.mark])
        return marked

    parts = [*frames(compared_rows(tally.written(base.facts(), work)), COLUMNS)]
    mark = pl.col("mark").cast(pl.String).replace(Mark.NEW.value, MISSING)
    rows = listed(parts, counts.recalibrated()).with_columns(mark=mark)
    yield comma_separated(rows.sort("expected", descending=True, maintain_order=True))


WORKLIST = Exporter(pieces=_pieces, remark=", the likeliest first", of_wikidata=True)
