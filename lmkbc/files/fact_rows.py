"""Rows of a split as a table, a fact a row: subject, relation and object. They are read as JSONL, a query a line."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import msgspec

from lmkbc.errors import InputError, counted
from lmkbc.files import jsonl, reader
from lmkbc.files.tables import InputTable, TableRow
from lmkbc.words import says_none

log = logging.getLogger(__name__)

ENDINGS = (".jsonl", ".csv", ".tsv")
"""Endings of the files of splits; all but the first are tables."""
COLUMNS = ("subject", "relation", "object", "object_id", "subject_id")
FIELDS = ("SubjectEntity", "Relation", "ObjectEntities", "ObjectEntitiesID", "SubjectEntityID")
"""Fields of JSONL in the order of the columns."""


def is_table(path: Path) -> bool:
    """Return whether a file is a table, by its ending."""
    return not {*ENDINGS[1:]}.isdisjoint(suffix.lower() for suffix in path.suffixes)


def field_of(path: Path, name: str) -> str:
    """Return the field of a split as its file calls it, for errors: "field Relation", or "column relation"."""
    return f"column {dict(zip(FIELDS, COLUMNS, strict=True)).get(name, name)}" if is_table(path) else f"field {name}"


def stream(path: Path, needs_id: Callable[[str], bool | None] = lambda _: None) -> IO[bytes]:
    """Return a split as a stream with one query a line, on the line where it begins: see `jsonl.stream`.

    needs_id: function from the name of a relation to whether its objects need an `object_id`; False where they are
    values, which stand for it if it is blank; None where it is not known.

    Rows with the same subject and relation are one query, and those with the same `object_id` one object with several
    names. A blank object says that there is none, and so does a word such as "none" in any language, unless it is the
    name of an `object_id`. InputError names the line of a wrong row.
    """
    return reader.joined(_lines(path, needs_id)) if is_table(path) else jsonl.stream(path)


def _lines(path: Path, needs_id: Callable[[str], bool | None]) -> Iterator[bytes]:
    queries: dict[tuple[str, str, str | None], dict[Any, TableRow]] = {}
    rows = 0
    for rows, row in enumerate(InputTable(path, COLUMNS, 2).rows(), start=1):  # noqa: B007 -- counted below
        *first, name, qid, subject_id = (value and value.strip() for value in row.values)
        qid = "" if says_none(qid) else qid
        name = ("" if says_none(name) else name) if not qid else qid if name == "" else name
        values = (*first, name, qid, subject_id)
        query = first[0] or "", first[1] or "", subject_id or None
        queries.setdefault(query, {}).setdefault(values, row._replace(values=values))
    if again := rows - sum(map(len, queries.values())):
        log.warning(
            "%s: %s", path, counted(again, "row repeats another, and counts once", "rows repeat others, and count once")
        )
    written = 0
    for query, own in queries.items():
        facts = [*own.values()]
        line = int(facts[0].place.rpartition(" ")[2])
        yield b"\n" * (line - written - 1) + msgspec.json.encode(_row(*query, facts, needs_id(query[1]))) + b"\n"
        written = line


def _row(
    subject: str, relation: str, subject_id: str | None, rows: list[TableRow], needs_id: bool | None
) -> dict[str, Any]:
    """Return a query as a row of a split, without fields of columns that the table lacks. needs_id: as in `stream`."""
    names: dict[str, dict[str, None]] = {}
    for row in rows:
        *_, name, qid, _ = row.values
        if name and not qid and needs_id:
            raise InputError(
                f"{row.place}, column object_id: nothing there for the object {name!r}; write its QID. Where there is "
                "no object, leave both blank; where it is not known, leave the query out"
            )
        if name:
            names.setdefault(qid or name, {})[name] = None
    if names and (bare := next((row.place for row in rows if not row.values[2]), "")):
        raise InputError(
            f"{bare}, field object: blank or a word for none, which says that ({subject!r}, {relation!r}) has no "
            "object, and another row names one; remove one of them"
        )
    objects = [next(iter(spelt)) if len(spelt) == 1 else [*spelt] for spelt in names.values()]
    has_ids = (needs_id is False and rows[0].values[2] is not None) or all(
        row.values[3] or (row.values[3] is not None and not names) for row in rows
    )
    fields = {
        "SubjectEntity": subject,
        "SubjectEntityID": subject_id,
        "Relation": relation,
        "ObjectEntities": None if rows[0].values[2] is None else objects,
        "ObjectEntitiesID": [*names] if has_ids else None,
    }
    return {field: value for field, value in fields.items() if value is not None}
