"""A file of labels: what a person says of facts, as CSV, JSONL or Parquet.

An audit writes such a file, and its page saves one. Any other table with these columns is one too. A row may have a
right value, the address of a source, a quote of it, a person and a day; all of them may be empty.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

import msgspec

from lmkbc.errors import InputError
from lmkbc.files.tables import InputTable
from lmkbc.kb.base.reviews import Verdict

LABELS = "labels.jsonl"
"""The file of labels that is written beside the page."""
FEWEST, MOST = 10, 1_000_000
"""Facts of a sample, at least and at most."""
WORDS = {
    **dict.fromkeys(("right", "correct", "true", "yes", "y", "r"), Verdict.RIGHT),
    **dict.fromkeys(("wrong", "incorrect", "false", "no", "n", "w"), Verdict.WRONG),
    **dict.fromkeys(("unknown", "cannot tell", "unsure", "unclear", "u", "?"), Verdict.UNKNOWN),
}
"""Word of a label, in any case -> what it means. No label is an empty cell, or null."""
WRITTEN = {
    "reviewed_on": "2026-11-22",
    "source": "https://example.org/page or Q42",
    "subject_id": "Q298",
    "object_id": "Q419",
}
"""Field of a decision -> an example of it."""


class SampleName(msgspec.Struct, frozen=True):
    """Identity of a sample: enough to draw it again. base: checksum of the base's facts. sample: number of facts."""

    base: str = ""
    sample: Annotated[int, msgspec.Meta(ge=FEWEST, le=MOST)] = 0
    seed: int = 0


class LabelRow(SampleName, frozen=True):
    """Row of a labels file. fact: index among all facts of the sample's base.

    value, value_id: the right object in place of a wrong one, and its QID. source: address of a page, or QID of an
    item. date: day of the label, as in 2026-11-22.
    """

    fact: int = -1
    label: str | None = None
    relation: str = ""
    subject: str = ""
    subject_id: str | None = None
    object: str = ""
    object_id: str | None = None
    literal: str | None = None
    confidence: float = 0.0
    value: str | None = None
    value_id: str | None = None
    source: str | None = None
    quote: str | None = None
    reviewer: str | None = None
    date: str | None = None

    @property
    def name(self) -> SampleName:
        """Return the identity of the fact's sample."""
        return SampleName(self.base, self.sample, self.seed)


class Label(NamedTuple):
    """A row with its verdict, None if it has none. place: file and line, for messages."""

    place: str
    row: LabelRow
    verdict: Verdict | None


def read_labels(path: Path) -> Iterator[Label]:
    """Yield the rows of a file. InputError, with the line, for what is no label, and for an empty file."""
    number = 0
    for number, given in enumerate(InputTable(path, (), 0, keeps_more=True).rows(), start=1):  # noqa: B007 -- see below
        place, cells = given.place, {name.casefold(): cell.strip() for name, cell in given.more.items() if cell}
        called = "verdict" if "verdict" in cells and "label" not in cells else "label"
        if "relation" not in map(str.casefold, given.more):
            found = ", ".join(map(repr, given.more))[:200]
            raise InputError(
                f"{path} has no column 'relation', but {found}: a label needs relation, subject and object"
            )
        word = " ".join(cells.pop(called, "").casefold().split())
        if word and word not in WORDS:
            raise InputError(
                f"{place}, field {called}: {word!r}; write right, wrong or unknown (or y, n, u), or leave it empty"
            )
        row = checked(place, {name: cell for name, cell in cells.items() if cell}, LabelRow)
        yield Label(place, row, WORDS.get(word))
    if not number:
        raise InputError(f"{path} is empty: give a file of 'lmkbc audit --sample' with labels filled in")


def checked(place: str, cells: dict[str, Any], kind: Any, columns: Mapping[str, str] = MappingProxyType({})) -> Any:
    """Return cells as a row of a kind. InputError names the place and the field of a wrong value.

    columns: field -> what it is called in the file, if it has another name there.
    """
    try:
        return msgspec.convert(cells, kind, strict=False)
    except msgspec.ValidationError as error:
        reason, _, where = str(error).partition(" - at `$.")
        field, first = where.rstrip("`"), reason.partition(" ")
        if first[0] in cells:  # of a check of the whole row
            field, reason = first[0], first[2]
        if "regex" in reason and field in WRITTEN:
            reason = f"write it as in {WRITTEN[field]}"
        given = f" ({str(cells[field])[:80]!r})" if field in cells else ""
        field = columns.get(field, field)
        raise InputError(f"{place}{field and f', field {field}'}: {reason}{given}") from None


class LabelsFile:
    """The labels of a sample. name: its identity. InputError, with the line, for rows of different samples."""

    def __init__(self, path: Path) -> None:
        self.path, self._rows = path, dict[int, Label]()
        for label in read_labels(path):
            place, row, _ = label
            first = next(iter(self._rows.values()), label)
            if not row.base:
                raise InputError(f"{place}: of no sample, so it gives no precision; 'lmkbc review' takes such a file")
            if row.name != first.row.name:
                raise InputError(f"{place}: of another sample than {_line(first)}; part the two")
            if row.fact in self._rows:
                raise InputError(f"{place}: repeats {_line(self._rows[row.fact])}; remove one")
            self._rows[row.fact] = label
        self.name = next(iter(self._rows.values())).row.name

    def check_base(self, base: str, path: Path) -> None:
        """Raise InputError if the labels belong to another base."""
        if self.name.base != base:
            raise InputError(
                f"{self.path} has labels of another base than {path}, or of an earlier state of it: give "
                "the base that its sample was drawn from"
            )

    def of(self, drawn: Container[int]) -> dict[int, Verdict | None]:
        """Return the label of each fact in the file. InputError for a fact that is not drawn."""
        for fact, label in self._rows.items():
            if fact not in drawn:
                raise InputError(f"{label.place}: fact {fact} is not of this sample; restore the line")
        return {fact: label.verdict or _implied(label) for fact, label in self._rows.items()}


def _implied(label: Label) -> Verdict | None:
    """Return that an object is wrong if a right value stands in its place."""
    return Verdict.WRONG if label.row.value or label.row.value_id else None


def _line(label: Label) -> str:
    return label.place.rpartition(", ")[2]
