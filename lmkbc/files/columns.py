"""The scored column of a file, or of answers in memory: row by row, or as a mapping by query."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec

from lmkbc.edition import Edition
from lmkbc.errors import InputError, counted
from lmkbc.files.fact_rows import COLUMNS, field_of, is_table, stream
from lmkbc.files.jsonl import decoded, no_collection, numbered, row_blocks
from lmkbc.files.tables import columns_of
from lmkbc.names import subject_key
from lmkbc.types import Pair
from lmkbc.words import says_none

log = logging.getLogger(__name__)

FIELDS: list[Any] = [("SubjectEntity", str), ("Relation", str)]


class MemoryRow(NamedTuple):
    """A row in memory, with the same fields as a row of a file."""

    SubjectEntity: str
    Relation: str
    objects: Any
    SubjectEntityID: Any = None


class Given:
    """Rows in memory. name: their name in messages. loose: whether values may have any type."""

    loose = True

    def __init__(self, name: Path, column: str, rows: Iterable[MemoryRow]) -> None:
        self.path, self.column, self._rows = name, column, list(rows)
        self.keeps: Callable[[Any], bool] | None = None

    @classmethod
    def of(cls, name: Path, column: str, values: Mapping[Pair, Any]) -> Given:
        """Return values by query as rows."""
        return cls(name, column, (MemoryRow(*pair, objects) for pair, objects in values.items()))

    def rows(self) -> Iterator[Any]:
        """Yield the rows in their order."""
        return iter(self._rows) if self.keeps is None else filter(self.keeps, self._rows)

    def numbered(self) -> Iterator[tuple[str, Any]]:
        """Yield each row with its place, for messages."""
        return ((f"row {number}", row) for number, row in enumerate(self._rows))


class Column:
    """Subject, relation and the raw value of one column (`objects`) of JSONL, or of a table (see `fact_rows`).

    It is the scored one of an edition, by whose names relations are called. keeps: predicate for the rows to yield;
    None for all. respelled: other name of a relation in the rows -> the edition's. loose: whether the last row is in a
    block with values other than lists of `item`s. Only one block of lines is in memory at a time.
    """

    def __init__(self, path: Path, edition: Edition, item: Any) -> None:
        self._decoders = [_decoder(edition.column, ("objects", kind)) for kind in (list[item], Any)]
        self.path, self.column, self.loose, self._edition = path, edition.column, False, edition
        self.keeps: Callable[[Any], bool] | None = None
        self.respelled: dict[str, str] = {}

    def rows(self) -> Iterator[Any]:
        """Yield the rows in file order. InputError, with file, line and field, for a wrong row or an empty file."""
        try:
            for rows, reader in row_blocks(
                self.path, *self._decoders, source=partial(stream, needs_id=self._edition.needs_id)
            ):
                self.loose = reader > 1
                yield from filter(self.keeps or (lambda _: True), map(self._spelt, rows))
        except InputError:
            refuse_answers(self.path, self.column)
            raise

    def numbered(self) -> Iterator[tuple[str, Any]]:
        """Yield each row and its SubjectEntityID with its line. InputError for two rows on a line."""
        decoder = _decoder(self.column, ("objects", Any), ("SubjectEntityID", Any, None))
        for number, line in numbered(self.path, partial(stream, needs_id=self._edition.needs_id)):
            yield from ((f"line {number}", self._spelt(row)) for row in decoded(self.path, line, decoder, number))

    def _spelt(self, row: Any) -> Any:
        if (own := self._edition.spelt(row.Relation) or row.Relation) != row.Relation:
            self.respelled[row.Relation], row.Relation = own, own
        return row


def refuse_answers(path: Path, column: str) -> None:
    """Raise InputError for a file of what models answered, in place of what was selected of it.

    column: the objects that are wanted.
    """
    first, table = b"", list[str]()
    with suppress(InputError):
        _, first = next(numbered(path, stream), (0, b""))
    if not (is_object := first.lstrip()[:1] == b"{"):  # Parquet, or a table with other columns than `fact_rows` has
        with suppress(InputError):
            table = columns_of(path)
    way = f"'lmkbc predict --from {path}"
    if kind := next((kind for kind in ("completions", "candidates") if f'"{kind}"'.encode() in first), ""):
        raise InputError(f"{path} holds {kind}, and {column} is wanted: {way}' makes predictions of them") from None
    names = (*(name for name, _ in FIELDS), column)
    lacking = [name for name in names if f'"{name}"'.encode() not in first]
    if is_object and lacking == [column] and f'"{column.removesuffix("ID")}"'.encode() in first:
        raise InputError(
            f"{path} has no {field_of(path, column)}, but names in {column.removesuffix('ID')}: 'lmkbc link {path}' "
            "finds their ids"
        ) from None
    if is_object and lacking in ([*names], [*names[:-1]], [column]):
        raise InputError(
            f"{path} has no {field_of(path, ' and '.join(lacking[:2]))}: if it is of a script of yours, {way}' "
            "makes predictions of it"
        ) from None
    if table and not (is_table(path) and {*COLUMNS[:2]} <= {name.casefold() for name in table}):
        column = f":answers={column}" if column in table else ""
        raise InputError(
            f"{path} is a table with the columns {', '.join(table)}, where lines of JSON with "
            f"{', '.join(names)} are wanted: if it is of a script of yours, {way}{column}' makes predictions of it"
        ) from None


Rows: TypeAlias = Column | Given
"""Rows of predictions, or of gold."""


def _decoder(column: str, *fields: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(msgspec.defstruct("Row", [*FIELDS, *fields], rename={"objects": column}, gc=False))


class Values(NamedTuple):
    """Column of a file. values: (subject, relation) -> raw value; for repeated pairs, the last value.

    namesakes: for repeated pairs, the value of each SubjectEntityID.
    """

    values: dict[Pair, Any]
    namesakes: Mapping[tuple[Pair, str | None], Any]


def read_column(path: Path, edition: Edition, *, agree: bool = False) -> Values:
    """Return the scored column of a file by query.

    agree: whether to refuse a query with two different answers; InputError names both lines. Rows of one subject and
    relation with two SubjectEntityIDs are two queries.
    """
    source = Column(path, edition, Any)
    values, repeated = dict[Pair, Any](), set[Pair]()
    with no_collection():
        for row in source.rows():
            pair = row.SubjectEntity, row.Relation
            if pair in values:
                repeated.add(pair)
            values[pair] = row.objects
    return Values(values, namesakes(source, repeated, agree=agree) if repeated else {})


def texts_of(value: Any) -> tuple[str, ...]:
    """Return the objects of a value as texts, also where it is no list of them; the names of an inner list are one."""
    each = value if isinstance(value, list | tuple) else [] if value is None else [value]
    return tuple(" / ".join(map(str, one)) if isinstance(one, list | tuple) else str(one) for one in each)


def respelled(path: Path, asked: Iterable[Pair], rows: Iterable[Pair]) -> dict[Pair, Pair]:
    """Return query -> the only row that answers it with another spelling of its subject (see `subject_key`).

    asked: queries without a row. rows: rows without a query. The number of pairs that were found is logged.
    """
    by_key: defaultdict[Pair, list[Pair]] = defaultdict(list)
    for row in rows:
        by_key[subject_key(row[0]), row[1]].append(row)
    found = {pair: by_key.get((subject_key(pair[0]), pair[1]), []) for pair in (asked if by_key else ())}
    own = {pair: same[0] for pair, same in found.items() if len(same) == 1}
    log_respelled(path, own)
    return own


def log_respelled(path: Path, rows: Mapping[Pair, Pair]) -> None:
    """Log how many rows spell a subject otherwise than their query does, with the first one. rows: query -> row."""
    for query, row in islice(rows.items(), 1):
        log.warning(
            "%s: %s by Unicode form (NFC) and blanks, first %r, which the split spells %r; the official script finds "
            "exact spellings alone",
            path,
            counted(len(rows), "row is matched", "rows are matched"),
            row[0],
            query[0],
        )


def is_lone_none(objects: Any) -> bool:
    """Return whether an answer is one text, which says that there is no object: scorers read it as a name."""
    return isinstance(objects, list) and len(objects) == 1 and isinstance(objects[0], str) and says_none(objects[0])


def log_lone_nones(path: Path, rows: int) -> None:
    """Warn about rows of predictions of which `is_lone_none` is true."""
    if rows:
        name = counted(rows, "row names", "rows name")
        log.warning("%s: %s a word such as 'None' alone, which is scored as a name: write [] for no object", path, name)


def namesakes(source: Rows, repeated: Container[Pair], *, agree: bool = False) -> dict[tuple[Pair, str | None], Any]:
    """Return the values of repeated pairs by SubjectEntityID. A row without an id matches rows with any id.

    agree: whether to refuse a query with two different answers; InputError names both lines.
    """
    values: dict[tuple[Pair, str | None], Any] = {}
    places: dict[tuple[Pair, str | None], str] = {}
    first: dict[Pair, str | None] = {}
    for place, row in source.numbered():
        if (pair := (row.SubjectEntity, row.Relation)) not in repeated:
            continue
        own = row.SubjectEntityID if isinstance(row.SubjectEntityID, str) and row.SubjectEntityID else None
        others = (own, None) if own else (None, first.get(pair))
        before = next(((pair, other) for other in others if (pair, other) in values), None)
        if agree and before and not _alike(values[before], row.objects):
            raise InputError(
                f"{source.path}, {place}, {field_of(source.path, source.column)}: ({pair[0]!r}, {pair[1]!r}) is "
                f"answered otherwise than in {places[before]}; keep one of the two"
                + ("" if own else ", or, if they are about two subjects of that name, give each its SubjectEntityID")
            )
        values[pair, own], places[pair, own] = row.objects, place
        first.setdefault(pair, own)
    return values


def _alike(value: Any, other: Any) -> bool:
    """Return whether two values of a column have the same objects, in any order."""
    if isinstance(value, list) and isinstance(other, list):
        return Counter(map(repr, value)) == Counter(map(repr, other))
    return bool(value == other)
