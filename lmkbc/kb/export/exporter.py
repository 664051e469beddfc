"""Exporter: a format of a knowledge base, by its name in `lmkbc.registry.EXPORTS`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import IO, Any

from lmkbc.kb.base.knowledge import Knowledge
from lmkbc.kb.export.left_out import ExportTally


@dataclass(frozen=True, slots=True)
class ExportSettings:
    """Settings of an export. base: prefix of the user's own IRIs. date: of the statements. run: id of the build."""

    base: str
    date: str
    run: str


@dataclass(frozen=True, kw_only=True)
class Exporter:
    """A format of a file.

    pieces: function that yields the text of a base's facts, and counts in the tally what it leaves out. what: what is
    counted in it.
    """

    pieces: Callable[[Knowledge, ExportTally, ExportSettings], Iterable[str]] | None = None
    what: str = "line"

    def write(self, file: IO[bytes], base: Knowledge, tally: ExportTally, settings: ExportSettings) -> int:
        """Write the facts of a base into a file, and return the number of its lines."""
        count = 0
        for text in self.pieces(base, tally, settings) if self.pieces else ():
            content = text.encode()
            file.write(content)
            count += content.count(b"\n")
        return count


@dataclass(frozen=True, kw_only=True)
class ReviewExporter(Exporter):
    """A format of a folder of files for review by a person.

    ending: of the files' names. form: function that formats a batch of statements.
    """

    ending: str
    form: Callable[[Sequence[Any]], str]
    what: str = "file"
