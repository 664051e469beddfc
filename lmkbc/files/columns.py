"""The scored column of a file, row after row: no more of the file is in memory than a block of lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from lmkbc.errors import InputError
from lmkbc.files import packed
from lmkbc.files.jsonl import decoded


class Column:
    """Subject, relation and the raw value of one column (`objects`) of a JSONL file, plain or gzipped.

    keeps: of which rows to tell; None: of all.
    path: the file. loose: whether the row that came last lies in a block whose values are not all lists of `item`s.
    """

    def __init__(self, path: Path, column: str, item: Any) -> None:
        fields = [("SubjectEntity", str), ("Relation", str)]
        kinds = (list[item], Any)
        self._decoders = [
            msgspec.json.Decoder(
                msgspec.defstruct("Row", [*fields, ("objects", kind)], rename={"objects": column}, gc=False)
            )
            for kind in kinds
        ]
        self.path = path
        self.loose = False
        self.keeps: Callable[[Any], bool] | None = None

    def rows(self) -> Iterator[Any]:
        """The rows in file order. InputError, with file, line and field, for what is no row, and for an empty file."""
        line, any_row = 1, False
        strict, lenient = self._decoders
        with packed.stream(self.path) as file:
            for block in packed.blocks(self.path, file):
                try:
                    rows, self.loose = decoded(self.path, block, strict, line), False
                except InputError:
                    rows, self.loose = decoded(self.path, block, lenient, line), True
                line += block.count(b"\n") + 1
                any_row = any_row or bool(rows)
                yield from rows if self.keeps is None else filter(self.keeps, rows)
        if not any_row:
            raise InputError(f"{self.path} is empty: it needs one JSON object per line")
