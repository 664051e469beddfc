"""Files of worked examples: picked by hand, or a bank of them, in an edition's format or a plainer one."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from lmkbc.errors import InputError, did_you_mean
from lmkbc.files.jsonl import QueryRow, examples_of, numbered_lines, read_bytes, read_jsonl
from lmkbc.files.packed import DOCUMENT
from lmkbc.relation import Relation
from lmkbc.types import Example
from lmkbc.workspace import bundled


class _Row(msgspec.Struct, forbid_unknown_fields=True):
    """Line of the simple JSONL format; `ids` is as long as `objects`."""

    subject: str
    relation: str
    objects: list[str | list[str]]
    id: str | None = None
    ids: list[str] | None = None


def read_bank(name: str, known: Mapping[str, Relation], asked: Mapping[str, Relation]) -> list[Example]:
    """Return the examples of a file, bundled or a path, in its order. InputError names file, line and field.

    known: relations by any name. asked: those of an edition, by the names that it gives them, as examples get them; the
    others keep the names of the file.
    """
    path = bundled("shots", name, ".jsonl")
    lines = [*numbered_lines(read_bytes(path, DOCUMENT))]
    if b'"SubjectEntity"' in (lines[0][1] if lines else b""):
        rows = read_jsonl(path, QueryRow)
    else:
        rows = [QueryRow(row.subject, row.relation, row.id, row.objects, row.ids) for row in read_jsonl(path, _Row)]
    spelt = {relation.name: spelling for spelling, relation in asked.items()}
    for (line, _), row in zip(lines, rows, strict=True):
        if row.Relation not in known:
            hint = did_you_mean(row.Relation, known)
            raise InputError(f"{path}, line {line}: {row.Relation!r} is no relation: {hint}")
        if not row.SubjectEntity.strip():
            raise InputError(f"{path}, line {line}: the subject is empty; name it")
        row.Relation = spelt.get(known[row.Relation].name, row.Relation)
    return examples_of(rows)
