"""The subjects of a knowledge base: a file of names, QIDs and classes, checked whole before any model is asked.

The file is read twice: once to check every row, hash the file and find what repeats, then as a stream, as often as
relations ask. What is held between is a byte a row.
"""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from lmkbc.errors import InputError
from lmkbc.files.checksum import file_sha256
from lmkbc.files.tables import Row, Table
from lmkbc.names import as_qid, shown

COLUMNS = ("name", "id", "class")
TOLD = 250_000
"""Rows after which a check says how far it is."""
log = logging.getLogger(__name__)


class Subject(NamedTuple):
    """What a knowledge base has facts of. row: its place among the subjects, from 0; class_: a QID or label, or ""."""

    row: int
    name: str
    id: str | None = None
    class_: str = ""


@dataclass(slots=True)
class Subjects:
    """The subjects of a file, each once, in its order.

    classes: class -> subjects. counts: of rows; what was merged, and what only looks alike. remarks: for people.
    """

    table: Table
    sha256: str
    classes: Counter[str] = field(default_factory=Counter)
    counts: dict[str, int] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    kept: bytearray = field(default_factory=bytearray)

    def __len__(self) -> int:
        return self.classes.total()

    def __iter__(self) -> Iterator[Subject]:
        """Stream the subjects. InputError where the file is no longer the one that was checked."""
        at = 0
        for row, kept in zip(self.table.rows(), self.kept, strict=False):
            if kept:
                yield _subject(row, at)
                at += 1
            if at == len(self):
                return
        raise InputError(f"{self.table.path} has changed while it was read: run the command again")

    @classmethod
    def of(cls, path: Path, limit: int | None = None) -> Subjects:
        """Check a file of subjects. InputError names the line of what is wrong.

        A QID that comes again is the same subject, whatever it is called there; a name with another QID is another
        subject. A name without a QID is the subject that has this name, with a QID elsewhere or not.
        """
        table = Table(path, COLUMNS, 1)
        found = cls(table, file_sha256(path))
        seen = _Seen()
        for row in table.rows():
            found.kept.append(seen.add(_subject(row, len(found.kept)), row.place))
            if len(found.kept) % TOLD == 0:
                log.info("%s: %s rows checked", path, f"{len(found.kept):,}")
        seen.settle(found.kept)
        if not any(found.kept):
            raise InputError(f"{path} names no subject: it needs a column 'name', and a row for each")
        if limit is not None:
            _keep_first(found.kept, limit)
        for row, kept in zip(table.rows(), found.kept, strict=False):
            if kept:
                found.classes[(row.values[2] or "").strip()] += 1
        found.counts = {"rows": len(found.kept), "subjects": len(found), **seen.counts}
        found.remarks = [f"{path}: {remark}" for remark in seen.remarks()]
        return found


def _keep_first(kept: bytearray, limit: int) -> None:
    for place, one in enumerate(kept):
        limit -= one
        if limit < 0:
            kept[place] = 0


def _subject(row: Row, at: int) -> Subject:
    """A row as a subject. InputError for a blank name, or an id that is none."""
    name, given, class_ = row.values
    if not (name and ("a" <= name[0].lower() <= "z" or shown(name))):
        raise InputError(f"{row.place}, field name: empty; name the subject")
    qid = as_qid(given) if given and given.strip() else None
    if given and given.strip() and qid is None:
        raise InputError(f"{row.place}, field id: {given!r} is no QID; write one like Q42, or leave it empty")
    return Subject(at, str(name).strip(), qid, (class_ or "").strip())


def key(text: str) -> bytes:
    """What stands for a name where many are held."""
    return hashlib.blake2b(text.encode(), digest_size=12).digest()


class _Seen:
    """What rows told of before, to know what repeats: some 200 bytes a subject, while the file is checked."""

    def __init__(self) -> None:
        self._names: dict[str, bytes] = {}
        self._ids: dict[bytes, str] = {}
        self._bare: dict[bytes, int] = {}
        self.counts = dict.fromkeys(("repeated", "other_names", "namesakes"), 0)
        self._first: dict[str, str] = {}

    def add(self, subject: Subject, place: str) -> bool:
        """Whether a row is a subject of its own, as far as is known by then."""
        name = key(subject.name)
        if subject.id is None:
            if name in self._bare:
                self.counts["repeated"] += 1
                return False
            self._bare[name] = subject.row
            return True
        if subject.id in self._names:
            other = self._names[subject.id] != name
            self._note("other_names" if other else "repeated", f"{subject.id} at {place}")
            self._ids.setdefault(name, subject.id)
            return False
        self._names[subject.id] = name
        if self._ids.setdefault(name, subject.id) != subject.id:
            self._note("namesakes", f"{subject.name!r} at {place}")
        return True

    def _note(self, what: str, first: str) -> None:
        self.counts[what] += 1
        self._first.setdefault(what, first)

    def settle(self, kept: bytearray) -> None:
        """Leave out the rows without a QID whose name has one elsewhere."""
        for name, row in self._bare.items():
            if name in self._ids:
                kept[row] = 0
                self.counts["repeated"] += 1

    def remarks(self) -> Iterator[str]:
        """What a person should know."""
        counts, first = self.counts, self._first
        if counts["repeated"]:
            yield f"{counts['repeated']} rows repeat a subject and are left out"
        if counts["other_names"]:
            yield (
                f"{counts['other_names']} rows give a QID again under another name, first {first['other_names']}: the "
                "first name is asked about"
            )
        if counts["namesakes"]:
            yield (
                f"{counts['namesakes']} names have another QID too, first {first['namesakes']}: these are subjects of "
                "their own"
            )
