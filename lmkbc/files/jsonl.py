"""Reader of JSONL: from lines to queries, examples and scored columns. Every error names file, line and field.

A file is decoded block by block by msgspec. Only if that fails, it is read again line by line to find the error. A JSON
array is read too, and so are objects that stretch over several lines or have commas between them (see `stream`).
"""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec

from lmkbc.errors import UNDECODABLE, InputError
from lmkbc.files import reader

Row = TypeVar("Row")

_BETWEEN = re.compile(r"[\s,\[\]]*")
"""Characters that may stand between the objects of an array."""
_HALF = re.compile(
    rb"(?P<whole>\\[^u]|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\xed[\xa0-\xbf][\x80-\xbf]"
)
"""A lone surrogate, as an escape or as bytes, in a text that was cut within a character."""


def without_halves(raw: bytes) -> bytes:
    """Return JSON with lone surrogates, which no reader takes, as U+FFFD."""
    return _HALF.sub(lambda found: found["whole"] or rb"\ufffd", raw)


def stream(path: Path) -> IO[bytes]:
    """Return a file of JSON objects as a stream with one object a line, each on the line where it begins.

    A file that has one object a line is returned as it is, and never in memory as a whole. Others are, such as an
    array. Objects that begin on the same line are given on lines of their own.
    """
    with reader.stream(path) as file:
        first = next(filter(bytes.strip, file), b"").strip()
    if first[:1] not in (b"[", b"{") or (first[:1] == b"{" and _is_json(first)):
        return reader.stream(path)
    return reader.joined(_one_a_line(reader.whole(path).decode("utf-8", "surrogateescape")))


def _is_json(line: bytes) -> bool:
    try:
        msgspec.json.decode(line)
    except UNDECODABLE:
        return False
    return True


def _one_a_line(text: str) -> Iterator[bytes]:
    """Yield the objects of a text, each on the line where it begins. What is no object is yielded too, as an error."""
    scan, written, line, at = json.JSONDecoder().raw_decode, 0, 0, 0
    while begin := _BETWEEN.match(text, at):
        line += text.count("\n", at, begin.end())
        at = begin.end()
        if at == len(text):
            return
        try:
            end = scan(text, at)[1] if text[at] == "{" else len(text)
        except (ValueError, RecursionError):
            end = len(text)
        blank = max(line - written, 0)
        written += blank + 1
        whole = text[at:end].replace("\r", " ").replace("\n", " ")
        yield ("\n" * blank + whole + "\n").encode("utf-8", "surrogateescape")
        line += text.count("\n", at, end)
        at = end


def read_jsonl(path: Path, row_type: type[Row]) -> list[Row]:
    """Return all rows of a JSONL file, checked against `row_type`. InputError for an empty file."""
    with no_collection():
        return [row for rows, _ in row_blocks(path, msgspec.json.Decoder(row_type)) for row in rows]


def row_blocks(
    path: Path, *decoders: msgspec.json.Decoder[Row], source: Callable[[Path], IO[bytes]] = stream
) -> Iterator[tuple[list[Row], int]]:
    """Yield the rows of a JSONL file block by block, with the number (from 1) of the decoder that reads the block.

    The first decoder that can read a block reads it. source: opens the file, as `stream` does. InputError for an empty
    file, and for a block that no decoder reads.
    """
    any_row, line = False, 1
    with source(path) as file:
        for block in reader.blocks(file):
            for number, decoder in enumerate(decoders, start=1):
                try:
                    rows = decoded(path, block, decoder, line)
                except InputError:
                    if number == len(decoders):
                        raise
                else:
                    any_row = any_row or bool(rows)
                    yield rows, number
                    break
            line += block.count(b"\n") + 1
    if not any_row:
        raise InputError(f"{path} is empty: it needs one JSON object per line, or, as a table, rows below its header")


def decoded(path: Path, block: bytes, decoder: msgspec.json.Decoder[Row], first: int = 1) -> list[Row]:
    """Return the rows of some lines; each line holds one row or is blank. first: number of the first line.

    Half of a surrogate pair, as in an emoji that was cut, is replaced by U+FFFD.
    """
    try:
        rows = decoder.decode_lines(block)
    except UNDECODABLE:
        whole = without_halves(block)
        if whole != block:
            return decoded(path, whole, decoder, first)
        raise first_bad_line(path, block, decoder, first) from None
    if len(rows) != block.count(b"\n") + 1 or block.startswith(b"\n") or b"\n\n" in block:
        for _, line in numbered_lines(block, first):
            try:
                decoder.decode(line)
            except msgspec.MsgspecError:  # no row, or more than one
                raise first_bad_line(path, block, decoder, first) from None
    return rows


@contextmanager
def no_collection() -> Iterator[None]:
    """Switch off the cyclic garbage collector. It would repeatedly scan millions of acyclic lists."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def numbered_lines(raw: bytes, first: int = 1) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of the lines that are not blank. first: number of the first line."""
    for number, line in enumerate(raw.split(b"\n"), start=first):
        if line.strip():
            yield number, line


def numbered(path: Path, source: Callable[[Path], IO[bytes]] = stream) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of the lines of `stream` that are not blank. source: as in `row_blocks`."""
    with source(path) as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield number, line.rstrip(b"\r\n")


def first_bad_line(path: Path, raw: bytes, decoder: msgspec.json.Decoder[Any], first: int = 1) -> InputError:
    """Return the error for the first line that cannot be decoded. first: number of the first line."""
    for number, line in numbered_lines(raw, first):
        try:
            decoder.decode(line.decode())
        except UnicodeDecodeError:
            return not_utf8(path, number, line)
        except RecursionError:
            return InputError(f"{path}, line {number}: nested too deeply; each line is one flat JSON object")
        except msgspec.ValidationError as error:
            reason, _, where = str(error).partition(" - at `$")
            field = where.rstrip("`").lstrip(".")
            return InputError(f"{path}, line {number}{field and f', field {field}'}: {reason}")
        except msgspec.DecodeError as error:
            return InputError(f"{path}, line {number}: not valid JSON ({error}); each line is one JSON object")
    return InputError(f"{path}: not one JSON object per line")


def not_utf8(path: Path, number: int, line: bytes) -> InputError:
    """Return the error for a line that is no UTF-8 text. It shows a word of the line as Windows-1252 reads it."""
    word = re.search(r"\w{0,20}[^\W\x00-\x7f]\w{0,20}", line.decode("cp1252", "replace"))
    reads = f" (Windows-1252 reads {word[0]!r} in it)" if word else ""
    return InputError(f"{path}, line {number}: not UTF-8 text{reads}; save the file as UTF-8")
