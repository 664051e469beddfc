"""Reading: JSONL lines to queries, examples and scored columns. Every error names file, line and field.

A file is decoded in one pass by msgspec; only when that fails is it read again, line by line, to say where.
"""

from __future__ import annotations

import gc
import gzip
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import platformdirs

from lmkbc.errors import InputError, did_you_mean
from lmkbc.score import Pair
from lmkbc.types import Edition, Example, GoldObject, Query

Row = TypeVar("Row")
BOM = b"\xef\xbb\xbf"


class QueryRow(msgspec.Struct, gc=False):
    """One line of a split, as published."""

    SubjectEntity: str
    Relation: str
    SubjectEntityID: str | None = None
    ObjectEntities: list[str | list[str]] | None = None
    ObjectEntitiesID: list[str] | None = None


def cache_dir() -> Path:
    """The user's cache: fetched data, fitted defaults."""
    return Path(platformdirs.user_cache_dir("lmkbc"))


def data_dirs(given: Path | None) -> list[Path]:
    """Where splits are looked for, in order: the directory given, else $LMKBC_DATA, else the user's cache."""
    if given is not None:
        if not given.is_dir():
            raise InputError(
                f"{given} is not a directory: --data takes the directory that holds lmkbc2023/ and the like"
            )
        return [given]
    env = os.environ.get("LMKBC_DATA")
    return [Path(env)] if env else [cache_dir() / "data"]


def read_bytes(path: Path) -> bytes:
    """The bytes of a plain or gzipped file, without a byte-order mark."""
    if path.is_dir():
        raise InputError(f"{path} is a directory: give a file")
    try:
        raw = path.read_bytes()
        raw = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    except FileNotFoundError:
        raise InputError(f"{path} does not exist: check the path") from None
    except (OSError, EOFError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    return raw.removeprefix(BOM)


def read_jsonl(path: Path, row_type: type[Row]) -> list[Row]:
    """All rows of a JSONL file, checked against `row_type`. An empty file is an error."""
    raw = read_bytes(path)
    decoder = msgspec.json.Decoder(row_type)
    try:
        with no_collection():
            rows = decoder.decode_lines(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise _first_bad_line(path, raw, decoder) from None
    if not rows:
        raise InputError(f"{path} is empty: it needs one JSON object per line")
    return rows


@contextmanager
def no_collection() -> Iterator[None]:
    """Hold the cyclic garbage collector off: it would scan millions of acyclic lists over and over as they appear."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def numbered_lines(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """Line numbers and content of the lines that are not blank."""
    for number, line in enumerate(raw.split(b"\n"), start=1):
        if line.strip():
            yield number, line


def _first_bad_line(path: Path, raw: bytes, decoder: msgspec.json.Decoder[Any]) -> InputError:
    for number, line in numbered_lines(raw):
        try:
            decoder.decode(line)
        except UnicodeDecodeError:
            return InputError(f"{path}, line {number}: not UTF-8 text; save the file as UTF-8")
        except RecursionError:
            return InputError(f"{path}, line {number}: nested too deeply; each line is one flat JSON object")
        except msgspec.ValidationError as error:
            reason, _, where = str(error).partition(" - at `$")
            field = where.rstrip("`").lstrip(".")
            return InputError(f"{path}, line {number}{field and f', field {field}'}: {reason}")
        except msgspec.DecodeError as error:
            return InputError(f"{path}, line {number}: not valid JSON ({error}); each line is one JSON object")
    return InputError(f"{path}: not one JSON object per line")


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
    """Find the line of a row that decodes but makes no sense."""
    same = []
    for number, line in numbered_lines(read_bytes(path)):
        row = msgspec.json.decode(line, type=QueryRow)
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
    """The queries of a split, in file order."""
    return [_query(row) for row in _rows(path, edition)]


def read_examples(path: Path, edition: Edition) -> list[Example]:
    """The queries of a labelled split with their objects, in file order."""
    return [Example(_query(row), tuple(_objects(row))) for row in _rows(path, edition)]


def _query(row: QueryRow) -> Query:
    return Query(row.SubjectEntity, row.Relation, row.SubjectEntityID)


def _objects(row: QueryRow) -> Iterable[GoldObject]:
    names = [tuple(item) if isinstance(item, list) else (item,) for item in row.ObjectEntities or ()]
    ids = row.ObjectEntitiesID
    if ids is not None and len(ids) != len(names):
        # Published names that hold commas were split at them: rejoin a lone one, else only the ids are certain.
        names = [(", ".join(name for name, *_ in names),)] if len(ids) == 1 and names else [(known,) for known in ids]
    for position, spellings in enumerate(names):
        identifier = ids[position] if ids is not None else None
        if any(spellings) or identifier:
            yield GoldObject(spellings, identifier)


def read_column(path: Path, column: str, item: Any = str | list[str]) -> tuple[dict[Pair, Any], int, bool]:
    """(subject, relation) -> raw value of one column, for scoring.

    Returns the values (of a repeated pair the last), how many rows repeated a pair, and whether every value is a list
    of `item`s.
    """
    rename = {"objects": column}
    fields = [("SubjectEntity", str), ("Relation", str)]
    sound = True
    try:
        typed = msgspec.defstruct("Row", [*fields, ("objects", list[item])], rename=rename, gc=False)
        rows: list[Any] = read_jsonl(path, typed)
    except InputError:
        loose = msgspec.defstruct("Row", [*fields, ("objects", Any)], rename=rename, gc=False)
        rows, sound = read_jsonl(path, loose), False
    values = {(row.SubjectEntity, row.Relation): row.objects for row in rows}
    return values, len(rows) - len(values), sound
