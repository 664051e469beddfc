"""Texts to learn from: lines, or rows of JSONL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from lmkbc.files import reader
from lmkbc.files.jsonl import not_utf8, row_blocks


class _TextRow(msgspec.Struct, gc=False):
    """A line of a text, or a row with its title."""

    text: str
    title: str = ""


def text_rows(path: Path) -> Iterator[_TextRow]:
    """Yield the lines of a text that are not blank, or the rows of a file with ".jsonl" in its name.

    InputError for a file that does not exist or is not UTF-8.
    """
    if ".jsonl" in path.suffixes:
        for rows, _ in row_blocks(path, msgspec.json.Decoder(_TextRow)):
            yield from rows
        return
    with reader.stream(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                text = line.decode().strip()
            except UnicodeDecodeError:
                raise not_utf8(path, number, line) from None
            if text:
                yield _TextRow(text)
