"""Exporter: a format of a knowledge base, by its name in `lmkbc.registry.EXPORTS`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from lmkbc.errors import OptionError
from lmkbc.files.atomic import writing
from lmkbc.files.writable import check_new
from lmkbc.kb.base.knowledge import Knowledge
from lmkbc.kb.export.left_out import ExportTally


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSettings:
    """Settings of an export.

    base: prefix of the user's own IRIs. date: of the statements. run: id of the build. known: file of known facts;
    None if none is given. batch: statements per file for review.
    """

    base: str
    date: str
    run: str
    known: Path | None
    batch: int


@dataclass(frozen=True, kw_only=True)
class Exporter:
    """A format of one file.

    pieces: function that yields the text of a base's facts, and counts in the tally what it leaves out. counted: what
    is counted in it, "" for the facts. remark: what is said of it when it is written. reviewed: whether only facts that
    persons decided are written, or only others, unless the user says so; None for all. of_wikidata: whether only facts
    of relations with a property of Wikidata can be written.
    """

    pieces: Callable[[Knowledge, ExportTally, ExportSettings], Iterable[str]] | None = None
    counted: str = "line"
    remark: str = ""
    reviewed: bool | None = None
    of_wikidata: bool = False

    def check(self, base: Knowledge) -> None:
        """Raise OptionError for a base of which the format can write no relation."""
        if self.of_wikidata and not any(about.is_of_wikidata() for about in base.relations.values()):
            raise OptionError(
                "format",
                f"is of Wikidata, and no relation has a property there: {', '.join(base.relations)}; give csv, sqlite "
                "or turtle, or name a property (property = 'P2048') in the relation's module, and build anew",
            )

    def write(self, base: Knowledge, out: Path, tally: ExportTally, settings: ExportSettings) -> int:
        """Write the facts of a base, and return how many are counted. InputError if it is there."""
        check_new(out)
        with writing(out, new=True) as file:
            return self.fill(file, base, tally, settings)

    def fill(self, file: IO[bytes], base: Knowledge, tally: ExportTally, settings: ExportSettings) -> int:
        """Write the text of the facts into a file, and return the number of its lines."""
        count = 0
        for text in self.pieces(base, tally, settings) if self.pieces else ():
            content = text.encode()
            file.write(content)
            count += content.count(b"\n")
        return count
