"""Files of worked examples: a chosen few, or a large bank, in an edition's format or a simpler one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import msgspec

from lmkbc.errors import InputError, did_you_mean
from lmkbc.files.jsonl import QueryRow, examples_of, numbered, read_jsonl
from lmkbc.relation import Relation
from lmkbc.types import Example
from lmkbc.workspace import bundled

OWN_WORDS = ("question", "reasoning", "answer")
"""Slots of a prompt that an example may fill with its own words."""


class _Row(msgspec.Struct, forbid_unknown_fields=True):
    """Line of the simple JSONL format.

    ids: as many as objects. question, reasoning, answer: the example's own words.
    """

    subject: str
    relation: str
    objects: list[str | list[str]]
    id: str | None = None
    ids: list[str] | None = None
    question: str | None = None
    reasoning: str | None = None
    answer: str | None = None

    @property
    def words(self) -> tuple[tuple[str, str], ...]:
        """Return its own words, by slot."""
        given = ((slot, getattr(self, slot)) for slot in OWN_WORDS)
        return tuple((slot, text) for slot, text in given if text is not None)


def read_bank(name: str, known: Mapping[str, Relation], asked: Mapping[str, Relation]) -> list[Example]:
    """Return the examples of a file, bundled or a path, in order. Raise InputError with file, line and field.

    known: relations by any name. asked: relations of an edition, by its names. Examples of these relations get the
    edition's names; others keep the names of the file.
    """
    path = bundled("shots", name, ".jsonl")
    lines = [*numbered(path)]
    if b'"SubjectEntity"' in (lines[0][1] if lines else b""):
        rows = read_jsonl(path, QueryRow)
        words: list[tuple[tuple[str, str], ...]] = [()] * len(rows)
    else:
        plain = read_jsonl(path, _Row)
        rows = [QueryRow(row.subject, row.relation, row.id, row.objects, row.ids) for row in plain]
        words = [row.words for row in plain]
    spelt = {relation.name: spelling for spelling, relation in asked.items()}
    for (line, _), row in zip(lines, rows, strict=True):
        if row.Relation not in known:
            hint = did_you_mean(row.Relation, known)
            raise InputError(f"{path}, line {line}: {row.Relation!r} is no relation: {hint}")
        if not row.SubjectEntity.strip():
            raise InputError(f"{path}, line {line}: the subject is empty; name it")
        row.Relation = spelt.get(known[row.Relation].name, row.Relation)
    return [replace(example, words=own) for example, own in zip(examples_of(rows), words, strict=True)]
