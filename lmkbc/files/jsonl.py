"""Reader of JSONL: from lines to queries, examples and scored columns. Every error names file, line and field.

A file is decoded in one pass by msgspec. Only if that fails, it is read again line by line to find the error. A JSON
array is read too, and so are objects that stretch over several lines or have commas between them (see `stream`).
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec

from lmkbc.edition import Edition
from lmkbc.errors import InputError, did_you_mean
from lmkbc.files import packed
from lmkbc.files.pairing import KnownPairs, named, objects_of
from lmkbc.types import Example, GoldObject, Query

Row = TypeVar("Row")

MOST_VALUES = 2_500_000
"""Most values of a JSONL file that is read as a whole. A value takes up to 100 bytes of memory."""


MARKS = (b",", b"[", b"{")
"""Bytes after which a JSON value may begin."""
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:(")|\\?\Z)|[{}]', re.DOTALL)
"""A brace, or a string of JSON. Group 1: the quote at its end, missing if the string goes on after these bytes."""
_BETWEEN = b" \t\r\n,[]"
"""Bytes that may stand between the objects of an array."""
_HALF = re.compile(
    rb"(?P<whole>\\[^u]|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\xed[\xa0-\xbf][\x80-\xbf]"
)
"""A lone surrogate, as an escape or as bytes, in a text that was cut within a character."""


def without_halves(raw: bytes) -> bytes:
    """Return JSON with lone surrogates, which no reader takes, as U+FFFD."""
    return _HALF.sub(lambda found: found["whole"] or rb"\ufffd", raw)


class QueryRow(msgspec.Struct, gc=False):
    """Line of a split, as published."""

    SubjectEntity: str
    Relation: str
    SubjectEntityID: str | None = None
    ObjectEntities: list[str | list[str]] | None = None
    ObjectEntitiesID: list[str] | None = None


_ROW = msgspec.json.Decoder(QueryRow)


def read_bytes(path: Path, most: int = packed.WHOLE) -> bytes:
    """Return the text of a plain or packed file as UTF-8 bytes. InputError for more than `most` bytes."""
    return packed.whole(path, most)


def stream(path: Path) -> IO[bytes]:
    """Return a file of JSON objects as a stream with one object a line, each on the line where it begins.

    A file that has one object a line is returned as it is. In others, such as an array, the objects are found by their
    braces. Objects that begin on the same line are given on lines of their own.
    """
    with packed.stream(path) as file:
        first = next(filter(bytes.strip, packed.lines(file)), b"").strip()
    file = packed.stream(path)
    if first[:1] not in (b"[", b"{") or (first[:1] == b"{" and _is_json(first)):
        return file
    return packed.joined(_one_a_line(path, file), file)


def _is_json(line: bytes) -> bool:
    try:
        msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _one_a_line(path: Path, file: IO[bytes]) -> Iterator[bytes]:
    """Yield the objects of a file, each on the line where it begins. What is no object is yielded too, as an error."""
    held, at, start, depth = b"", 0, 0, 0  # start: of the object, or of what stands before it
    line, written = 1, 0  # number of the line at `start`, and of lines that were yielded

    def put(piece: bytes) -> bytes:
        nonlocal written
        whole = piece.lstrip(_BETWEEN)
        blank = max(line + piece.count(b"\n", 0, len(piece) - len(whole)) - 1 - written, 0)
        written += blank + 1
        return b"\n" * blank + whole.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"

    while len(held) <= packed.LONGEST_LINE and (part := packed.read(path, file)):
        held += part
        for token in _TOKEN.finditer(held, at):
            if token[0][:1] == b'"':
                if token[1] is None:
                    at = token.start()
                    break
                continue
            here = token.end() if token[0] == b"}" else token.start()
            depth += 1 if token[0] == b"{" else -1 if depth else 0
            if depth == (token[0] == b"{"):
                if held[start:here].strip(_BETWEEN):
                    yield put(held[start:here])
                line, start = line + held.count(b"\n", start, here), here
        else:
            at = len(held)
        held, at, start = held[start:], at - start, 0
    if held.strip(_BETWEEN):
        yield put(held)
    yield from iter(lambda: packed.read(path, file), b"")


def read_jsonl(path: Path, row_type: type[Row]) -> list[Row]:
    """Return all rows of a JSONL file, checked against `row_type`. InputError for an empty file.

    InputError also for a file that is too large for memory: more than `packed.WHOLE` bytes, or `MOST_VALUES` values.
    """
    with no_collection():
        return [row for rows, _ in row_blocks(path, msgspec.json.Decoder(row_type)) for row in rows]


def row_blocks(
    path: Path, *decoders: msgspec.json.Decoder[Row], bounded: bool = True
) -> Iterator[tuple[list[Row], int]]:
    """Yield the rows of a JSONL file block by block, with the number (from 1) of the decoder that reads the block.

    The first decoder that can read a block reads it. InputError for an empty file, and for a block that no decoder
    reads. bounded: see `counted`.
    """
    any_row = False
    for line, block in counted(path, *MARKS, bounded=bounded, opened=stream):
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
    if not any_row:
        raise InputError(f"{path} is empty: it needs one JSON object per line")


def counted(
    path: Path, *marks: bytes, bounded: bool = True, opened: Callable[[Path], IO[bytes]] = packed.stream
) -> Iterator[tuple[int, bytes]]:
    """Yield a file in blocks of whole lines, each with the number of its first line.

    marks: bytes that begin a value, in addition to line ends. bounded: whether to raise InputError for more than
    `packed.WHOLE` bytes or `MOST_VALUES` values. opened: opens the file.
    """
    values, line = 0, 1
    with opened(path) as file:
        for block in packed.blocks(path, file, packed.WHOLE if bounded else None):
            lines = block.count(b"\n") + 1
            values += lines + sum(map(block.count, marks)) if bounded else 0
            if values > MOST_VALUES:
                raise InputError(f"{path} holds more than {MOST_VALUES:,} values: give it in parts")
            yield line, block
            line += lines


def decoded(path: Path, block: bytes, decoder: msgspec.json.Decoder[Row], first: int = 1) -> list[Row]:
    """Return the rows of some lines; each line holds one row or is blank. first: number of the first line.

    Half of a surrogate pair, as in an emoji that was cut, is replaced by U+FFFD.
    """
    try:
        rows = decoder.decode_lines(block)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
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


def numbered(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of the lines of `stream` that are not blank."""
    with stream(path) as file:
        for number, line in enumerate(packed.lines(file), start=1):
            if line.strip():
                yield number, line.rstrip(b"\r\n")


def first_bad_line(path: Path, raw: bytes, decoder: msgspec.json.Decoder[Any], first: int = 1) -> InputError:
    """Return the error for the first line that cannot be decoded. first: number of the first line."""
    for number, line in numbered_lines(raw, first):
        try:
            decoder.decode(line)
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


def _rows(path: Path, edition: Edition) -> list[QueryRow]:
    rows = read_jsonl(path, QueryRow)
    known, seen = frozenset(edition.relations), set[tuple[str, str, str | None]]()
    for row in rows:
        key = (row.SubjectEntity, row.Relation, row.SubjectEntityID)
        if row.Relation in known and row.SubjectEntity.strip() and (key not in seen or key[:2] in edition.repeats):
            seen.add(key)
            continue
        raise _bad_query(path, row, key in seen, edition)
    return rows


def _bad_query(path: Path, bad: QueryRow, repeated: bool, edition: Edition) -> InputError:
    """Return the error for a row that decodes but is wrong, with its line."""
    same = []
    for number, line in numbered(path):
        (row,) = decoded(path, line, _ROW, number)
        if (row.SubjectEntity, row.Relation, row.SubjectEntityID) == (
            bad.SubjectEntity,
            bad.Relation,
            bad.SubjectEntityID,
        ):
            same.append(number)
    if repeated:
        pair = f"({bad.SubjectEntity!r}, {bad.Relation!r})"
        return InputError(f"{path}, line {same[1]}, field SubjectEntity: {pair} repeats line {same[0]}; remove one")
    where = f"{path}, line {same[0]}"
    if not bad.SubjectEntity.strip():
        return InputError(f"{where}, field SubjectEntity: empty; name the subject")
    hint = did_you_mean(bad.Relation, edition.relations)
    return InputError(f"{where}, field Relation: {bad.Relation!r} is no relation of edition {edition.name}; {hint}")


def read_queries(path: Path, edition: Edition) -> list[Query]:
    """Return the queries of a split, in file order."""
    return [_query(row) for row in _rows(path, edition)]


def read_examples(path: Path, edition: Edition) -> list[Example]:
    """Return the queries of a labelled split with their objects, in file order."""
    return examples_of(_rows(path, edition))


def examples_of(rows: Sequence[QueryRow]) -> list[Example]:
    """Return rows as examples with their objects, in order."""
    known = _known(rows)
    objects = [_objects(row, known) for row in rows]
    torn = [place for place, row in enumerate(rows) if not _parallel(row)]
    while [
        item for place in torn for item in objects[place] if item.name and item.id and known.add(item.name, item.id)
    ]:
        for place in torn:  # pairs from one row may resolve another row
            objects[place] = _objects(rows[place], known)
    return [Example(_query(row), golds) for row, golds in zip(rows, objects, strict=True)]


def _query(row: QueryRow) -> Query:
    return Query(row.SubjectEntity, row.Relation, row.SubjectEntityID)


def _known(rows: Iterable[QueryRow]) -> KnownPairs:
    """Return the confirmed pairs of name and id: from rows with a name for each id, and from subjects."""
    known = KnownPairs()
    for row in rows:
        if row.SubjectEntityID:
            known.add(row.SubjectEntity, row.SubjectEntityID)
        if _parallel(row):
            for name, identifier in zip(row.ObjectEntities or (), row.ObjectEntitiesID or (), strict=True):
                if isinstance(name, str):
                    known.add(name, identifier)
    return known


def _parallel(row: QueryRow) -> bool:
    return row.ObjectEntitiesID is not None and len(row.ObjectEntitiesID) == len(row.ObjectEntities or ())


def _objects(row: QueryRow, known: KnownPairs) -> tuple[GoldObject, ...]:
    names = [tuple(item) if isinstance(item, list) else (item,) for item in row.ObjectEntities or ()]
    ids = row.ObjectEntitiesID
    if ids is not None and len(ids) != len(names):
        return objects_of([spelling for spellings in names for spelling in spellings[:1]], ids, known)
    pairs = zip(names, ids if ids is not None else [None] * len(names), strict=True)
    return tuple(named(spellings, identifier) for spellings, identifier in pairs if any(spellings) or identifier)
