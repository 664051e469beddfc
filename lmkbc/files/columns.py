"""The scored column of a file, row after row: no more of the file is in memory than a block of lines."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import msgspec

from lmkbc.errors import InputError
from lmkbc.files import packed
from lmkbc.files.jsonl import BOM, first_bad_line, read_bytes

BLOCK = 1 << 20
LONGEST_LINE = 1 << 26
"""Bytes of one line; the longest of the published rows has 40,000."""


class Column:
    """Subject, relation and the raw value of one column (`objects`) of a JSONL file, plain or gzipped.

    It can be read more than once; what is no plain file, such as a pipe, is held in memory for that.
    keeps: of which rows to tell; None: of all.
    loose: whether the row that came last lies in a block whose values are not all lists of `item`s.
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
        self._path = path
        self._held = None if path.is_file() else read_bytes(path)
        self.loose = False
        self.keeps: Callable[[Any], bool] | None = None

    def rows(self) -> Iterator[Any]:
        """The rows in file order. InputError, with file, line and field, for what is no row, and for an empty file."""
        line, any_row = 1, False
        strict, lenient = self._decoders
        for block in self._blocks():
            try:
                rows = strict.decode_lines(block)
                self.loose = False
            except (msgspec.MsgspecError, UnicodeDecodeError):
                rows, self.loose = self._decoded(block, lenient, line), True
            line += block.count(b"\n") + 1
            any_row = any_row or bool(rows)
            yield from rows if self.keeps is None else filter(self.keeps, rows)
        if not any_row:
            raise InputError(f"{self._path} is empty: it needs one JSON object per line")

    def _decoded(self, block: bytes, decoder: msgspec.json.Decoder[Any], line: int) -> list[Any]:
        try:
            return decoder.decode_lines(block)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise first_bad_line(self._path, block, decoder, line) from None

    def _blocks(self) -> Iterator[bytes]:
        """The file in blocks of whole lines, the last newline of each left out."""
        begun = b""
        try:
            with self._opened() as file:
                chunk = file.read(BLOCK).removeprefix(BOM)
                while chunk:
                    lines, newline, rest = chunk.rpartition(b"\n")
                    if newline:
                        yield begun + lines
                        begun = rest
                    else:
                        begun += rest
                    if len(begun) > LONGEST_LINE:
                        raise InputError(
                            f"{self._path}: a line has more than {LONGEST_LINE >> 20} MiB; each is one row"
                        )
                    chunk = file.read(BLOCK)
        except OSError as error:
            raise InputError(f"{self._path} cannot be read: {error}") from None
        if begun:
            yield begun

    def _opened(self) -> IO[bytes]:
        return packed.stream(self._path) if self._held is None else io.BytesIO(self._held)
