"""Texts of any length as a stream: lines of plain text, or title and text of JSONL rows; packed or not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from lmkbc.errors import InputError
from lmkbc.files.jsonl import counted, row_blocks


class TextRow(msgspec.Struct, gc=False):
    """A line of a text, or a row with its title."""

    text: str
    title: str = ""


def lines(path: Path, *, bounded: bool = True) -> Iterator[str]:
    """Yield the lines of a text that are not blank. InputError for a file that does not exist or is not UTF-8.

    bounded: see `counted`.
    """
    try:
        for _, block in counted(path, bounded=bounded):
            yield from filter(None, map(str.strip, block.decode().splitlines()))
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8 text; save the file as UTF-8") from None


def text_rows(path: Path) -> Iterator[TextRow]:
    """Yield the lines of a text, or the rows of a file with ".jsonl" in its name."""
    if ".jsonl" not in path.suffixes:
        yield from map(TextRow, lines(path, bounded=False))
        return
    for rows, _ in row_blocks(path, msgspec.json.Decoder(TextRow), bounded=False):
        yield from rows
