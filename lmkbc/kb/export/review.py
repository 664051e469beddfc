"""A folder of QuickStatements: what is new as commands, and what contradicts or is not covered as tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from lmkbc.errors import OptionError
from lmkbc.files.atomic import staged
from lmkbc.files.tables import comma_separated
from lmkbc.files.writable import check_directory
from lmkbc.kb.audit.known import Mark, marked_by
from lmkbc.kb.base.fact_row import FactRow
from lmkbc.kb.base.knowledge import Knowledge
from lmkbc.kb.export.exporter import Exporter, ExportSettings
from lmkbc.kb.export.left_out import ExportTally
from lmkbc.kb.export.quickstatements import DECIDED, NOTICE, REVIEW, Proposal, batches, commands, proposal, table
from lmkbc.kinds.kind import LeftOutError

COLUMNS = {
    **dict.fromkeys("relation property subject subject_id object object_id literal".split(), pl.String),
    "confidence": pl.Float64,
    **dict.fromkeys(("model", "known"), pl.String),
}
"""Columns of facts that are no proposals. known: what is known in their place."""
NEED = "quickstatements writes only facts that Wikidata lacks"
ASIDE = {
    Mark.CONTRADICTING: "contradicting.csv",
    Mark.REFINING: "refining.csv",
    Mark.UNCOVERED: "not-covered.csv",
}
"""Mark -> file with facts that are no proposals."""
OTHERS = {
    Mark.KNOWN: "known already",
    Mark.CONTRADICTING: f"another value is known, or that there is none ({ASIDE[Mark.CONTRADICTING]} lists them)",
    Mark.REFINING: f"a less precise value is known ({ASIDE[Mark.REFINING]} lists them)",
    Mark.UNCOVERED: f"what --known names does not cover them ({ASIDE[Mark.UNCOVERED]} lists them)",
}
"""Mark -> why a fact is no proposal."""


@dataclass(frozen=True, kw_only=True)
class ReviewExporter(Exporter):
    """A format of a folder of files for persons, with the facts that are new beside known ones.

    ending: of the files' names. form: function that formats a batch of statements.
    """

    ending: str
    form: Callable[[Sequence[Proposal]], str]
    counted: str = "file"
    remark: str = " to be checked by a person; what no person decided is never ready for upload: a model is no source"
    reviewed: bool | None = True
    of_wikidata: bool = True

    def write(self, base: Knowledge, out: Path, tally: ExportTally, settings: ExportSettings) -> int:
        """Write the facts of a base, and return the number of files of new ones. OptionError without known facts."""
        mark_of, files = marked_by(settings.known, base, NEED), 0
        check_directory(out)
        if out.is_dir() and any(out.iterdir()):
            raise OptionError("out", f"{out} holds files already: name a directory that is new or empty")
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

            decided = True
            for batch in batches(tally.written(base.facts(), proposed), settings.batch):
                files += 1
                decided = decided and all(one.is_decided for one in batch)
                (stage / f"review-{files:05d}.{self.ending}").write_text(self.form(batch), encoding="utf-8")
            (stage / NOTICE).write_text(DECIDED if decided else REVIEW, encoding="utf-8")
            for mark, rows in aside.items():
                frame = pl.DataFrame(rows, COLUMNS, orient="row")
                (stage / ASIDE[mark]).write_text(comma_separated(frame), encoding="utf-8")
        return files


COMMANDS, TABLE = ReviewExporter(ending="txt", form=commands), ReviewExporter(ending="csv", form=table)
