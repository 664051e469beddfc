"""Rows of a split as a table, a fact a row: subject, relation and object. They are read as JSONL, a query a line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import msgspec

from lmkbc.errors import InputError
from lmkbc.files import jsonl, reader
from lmkbc.files.tables import InputTable

ENDINGS = (".jsonl", ".csv", ".tsv")
"""Endings of the files of splits; all but the first are tables."""
COLUMNS = ("subject", "relation", "object", "subject_id", "object_id")


def stream(path: Path) -> IO[bytes]:
    """Return a split as a stream with one query a line, on the line where it begins: see `jsonl.stream`.

    Rows with the same subject and relation are one query, and those with the same `object_id` one object with several
    names. A blank object says that there is none. InputError names the line of a wrong row.
    """
    is_table = not {*ENDINGS[1:]}.isdisjoint(suffix.lower() for suffix in path.suffixes)
    return reader.joined(_lines(path)) if is_table else jsonl.stream(path)


def _lines(path: Path) -> Iterator[bytes]:
    queries: dict[tuple[Any, ...], tuple[str, dict[str, Any], dict[str, list[str]]]] = {}
    for row in InputTable(path, COLUMNS, 2).rows():
        subject, relation, name, subject_id, object_id = ((value or "").strip() or None for value in row.values)
        place, query, objects = queries.setdefault((subject, relation, subject_id), (row.place, {}, {}))
        query |= {"SubjectEntity": subject or "", "Relation": relation or "", "SubjectEntityID": subject_id}
        if (name is None and objects) or (name and not objects and "ObjectEntities" in query):
            raise InputError(
                f"{row.place}, field object: ({subject!r}, {relation!r}) has a blank object, which says that there is "
                f"none, and another object, the first in {place}; remove one of them"
            )
        if name is not None:
            names = objects.setdefault(object_id or name, [])
            names += [] if name in names else [name]
        if row.values[2] is not None:
            query["ObjectEntities"] = [names[0] if len(names) == 1 else names for names in objects.values()]
            has_ids = row.values[4] is not None and query.get("ObjectEntitiesID", objects) is not None
            query["ObjectEntitiesID"] = [*objects] if has_ids and (object_id or not objects) else None
    written = 0
    for place, query, _ in queries.values():
        line = int(place.rpartition(" ")[2])
        fields = {field: value for field, value in query.items() if value is not None}
        yield b"\n" * (line - written - 1) + msgspec.json.encode(fields) + b"\n"
        written = line
