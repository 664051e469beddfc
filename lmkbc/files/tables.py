"""Tables of a few text columns, read row by row: CSV, JSONL or Parquet. The content decides which format it is.

The values of CSV are parted by the sign that parts the header: a comma, a semicolon or a tab. What is written as CSV is
no formula of a spreadsheet.

Only one row is in memory; for Parquet, one row group.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from lmkbc.errors import InputError
from lmkbc.files import reader
from lmkbc.files.jsonl import decoded, not_utf8, numbered, without_halves

if TYPE_CHECKING:
    import polars as pl

SCORES = "score scores confidence confidences conf probability probabilities prob probs certainty likelihood"
"""Usual names of a column, or of a key, with scores from 0 to 1."""
AT_ONCE = 1 << 16
"""Rows to convert between Python's values and a data frame at once."""
_PARQUET = b"PAR1"
_SIGNS = {",": "comma", ";": "semicolon", "\t": "tab"}
_NUMBER = r"^[+-]?([0-9][0-9,]*\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_FORMULA = "'*[=+\\-@\t\r\n\uff0b\uff0d\uff1d\uff20]"
"""Beginning of a formula of a spreadsheet, with apostrophes of our own or of the text."""
_APOSTROPHE = re.compile(f"'(?={_FORMULA})")
_CONTROL = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"


class TableRow(NamedTuple):
    """Values of the chosen columns, None for a missing one. place: file and row, for messages.

    more: the values of other columns, by name, as text; empty unless the table keeps them.
    """

    place: str
    values: tuple[str | None, ...]
    more: Mapping[str, str | None] = MappingProxyType({})


class InputTable:
    """The rows of a file, which can be read more than once. InputError names the file, the line and the column.

    columns: columns to read; others are ignored. needed: number of required columns, from the first.
    also: of CSV and Parquet, other name -> column of which it is the name if no column has the name itself.
    ends: whether the last line of CSV needs a line end, since a value that is cut off is a wrong value.
    keeps_more: whether rows have the values of other columns too.
    Once a row is read, `called` has the names of the columns in the file.
    """

    def __init__(
        self,
        path: Path,
        columns: Sequence[str],
        needed: int,
        *,
        ends: bool = False,
        also: Mapping[str, str] = MappingProxyType({}),
        keeps_more: bool = False,
    ) -> None:
        self._keeps_more = keeps_more
        self.path, self._columns, self._needed, self._ends, self._also = path, tuple(columns), needed, ends, also
        self.called = {name: name for name in columns}

    def rows(self) -> Iterator[TableRow]:
        """Yield the rows in the order of the file, without blank lines."""
        with reader.stream(self.path) as file:
            start = file.read(4096)
        if start.startswith(_PARQUET):
            yield from self._parquet()
        elif start.lstrip()[:1] in (b"{", b"["):
            yield from self._jsonl()
        else:
            yield from self._csv(start)

    def _jsonl(self) -> Iterator[TableRow]:
        needed, rest = self._columns[: self._needed], self._columns[self._needed :]
        fields: list[Any] = [(f"f{place}", str) for place in range(len(needed))]
        fields += [(f"f{place}", str | None, None) for place in range(len(needed), len(self._columns))]
        rename = {f"f{place}": name for place, name in enumerate((*needed, *rest))}
        decoder = msgspec.json.Decoder(msgspec.defstruct("Row", fields, rename=rename, gc=False))
        for number, line in numbered(self.path):
            text = _without_nan(line) if self._keeps_more else line
            for row in decoded(self.path, text, decoder, number):
                every = msgspec.json.decode(without_halves(text)) if self._keeps_more else {}
                more = {name: as_text(value) for name, value in every.items() if name not in self._columns}
                yield TableRow(f"{self.path}, line {number}", msgspec.structs.astuple(row), more)

    def _csv(self, start: bytes) -> Iterator[TableRow]:
        with reader.stream(self.path) as file:
            text = io.TextIOWrapper(file, "utf-8", "surrogateescape", newline="")  # ends lines at \r too
            sign = separator(start, self._columns[: self._needed], self._also)
            records = csv.reader(self._text(text), delimiter=sign, strict=True)
            header, places, others = list[str](), list[int](), dict[str, int]()
            for where, cells in self._records(records):
                if not header and cells[0].startswith("sep="):  # Excel's own first line
                    continue
                if not header:
                    header = [cell.strip() for cell in cells]
                    places, others = self._places(header)
                    continue
                if len(cells) != len(header):
                    raise InputError(
                        f"{where}: {len(cells)} values where the header names {len(header)} columns; put a name that "
                        f"holds a {_SIGNS[sign]} in quotes"
                    )
                plain = [cell[1:] if _APOSTROPHE.match(cell) else cell for cell in cells]
                more = {name: plain[place] for name, place in others.items()}
                yield TableRow(where, tuple(plain[place] if place >= 0 else None for place in places), more)

    def _records(self, records: Any) -> Iterator[tuple[str, list[str]]]:
        """Yield the rows of CSV with a value that is not blank, each with its place."""
        begins = 1
        try:
            for cells in records:
                if any(map(str.strip, cells)):
                    yield f"{self.path}, line {begins}", cells
                begins = records.line_num + 1
        except csv.Error as error:
            raise InputError(
                f"{self.path}, line {begins}: {error}; put a name that holds quotes, commas or line ends in quotes, "
                "and double the quotes within it"
            ) from None

    def _text(self, file: io.TextIOWrapper) -> Iterator[str]:
        for number, line in enumerate(file, start=1):
            if self._ends and not line.endswith(("\n", "\r")):
                raise InputError(
                    f"{self.path}, line {number}: has no line end, so the file may be cut off; get it whole, or end "
                    "the line"
                )
            try:
                line.encode()
            except UnicodeEncodeError:  # bytes that are no UTF-8 stand as halves of surrogate pairs
                raise not_utf8(self.path, number, line.encode("utf-8", "surrogateescape")) from None
            yield line

    def _places(self, names: Sequence[str]) -> tuple[list[int], dict[str, int]]:
        """Return the positions of the columns, -1 for a missing one, and those of other columns that are kept.

        Case does not count. Columns without a name are left out.
        """
        header = [*map(_folded, names)]
        header = [own if (own := self._also.get(name, name)) not in header else name for name in header]
        for name in self._columns[: self._needed]:
            if name not in header:
                first = ",".join(self._columns[: self._needed + 2])
                found = ", ".join(map(repr, filter(None, names)))[:200] or "none"
                raise InputError(
                    f"{self.path} has no column {name!r}, but {found}: the first line must name it, as in {first}"
                )
        places = [header.index(name) if name in header else -1 for name in self._columns]
        self.called |= {name: names[at] for name, at in zip(self._columns, places, strict=True) if at >= 0}
        others = {name: at for at, name in enumerate(names) if self._keeps_more and name and at not in places}
        twice = [name for name in self._columns if header.count(name) > 1]
        if twice := [*twice, *(name for name in others if [*names].count(name) > 1)]:
            raise InputError(f"{self.path} has two columns {twice[0]!r}: rename one")
        return places, others

    def _parquet(self) -> Iterator[TableRow]:
        import polars as pl

        number = 0
        try:
            schema = pl.read_parquet_schema(self.path)
            names = [*schema]
            places, others = self._places(names)
            there = [names[place] if place >= 0 else "" for place in places]
            for name in filter(None, there):
                if not isinstance(schema[name], pl.String | pl.Categorical | pl.Enum | pl.Null):
                    raise InputError(f"{self.path}, column {name!r}: holds {schema[name]}, where text is due; cast it")
            texts = pl.scan_parquet(self.path, glob=False).select(
                *(pl.col(name).cast(pl.String) for name in there if name),
                *(name if schema[name].is_nested() else pl.col(name).cast(pl.String) for name in others),
            )
            for batch in texts.collect_batches(chunk_size=AT_ONCE, maintain_order=True):
                columns = [batch[name].to_list() if name else [None] * len(batch) for name in (*there, *others)]
                for values in zip(*columns, strict=True):
                    number += 1
                    for name, value in zip(there[: self._needed], values, strict=False):
                        if value is None:
                            raise InputError(f"{self.path}, row {number}: {name} is null; mend the row")
                    more = dict(zip(others, map(as_text, values[len(there) :]), strict=True))
                    yield TableRow(f"{self.path}, row {number}", values[: len(there)], more)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            reason = (str(error).splitlines() or ["damaged"])[0]
            raise InputError(f"{self.path} cannot be read as Parquet: {reason}; make it again") from None


def columns_of(path: Path) -> list[str]:
    """Return the names of the columns of a table as its first row has them; none for a file without a row."""
    return [name for row in islice(InputTable(path, (), 0, keeps_more=True).rows(), 1) for name in row.more]


def folded(name: str) -> str:
    """Return the name of a column or of a key without case, blanks and signs."""
    return re.sub(r"[\W_]", "", name).casefold()


def comma_separated(frame: pl.DataFrame, *, header: bool = True) -> str:
    """Return a data frame as CSV in which no text is a formula of a spreadsheet.

    An apostrophe stands before a text that begins as a formula and is no number. Our reader of CSV takes it off.
    Control characters are replaced, except tabs and ends of lines. Source: OWASP, "CSV injection".
    """
    import polars as pl
    import polars.selectors as cs

    text = (
        cs.by_dtype(pl.String, pl.Categorical, pl.Enum)
        .cast(pl.String)
        .str.replace_all(_CONTROL, "\N{REPLACEMENT CHARACTER}")
    )
    inert = ~text.str.contains(f"^{_FORMULA}") | text.str.contains(_NUMBER)
    return frame.with_columns(pl.when(inert).then(text).otherwise(pl.lit("'") + text)).write_csv(include_header=header)


def separator(start: bytes, needed: Iterable[str], also: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the sign that parts the header of CSV into the columns that are needed, else into the most columns.

    also: other name -> column of which it is the name.
    """
    lines = (line for line in start.decode("utf-8", "replace").splitlines() if not line.startswith("sep="))
    first = next(filter(str.strip, lines), "")

    def fit(sign: str) -> tuple[bool, int]:
        header = [*map(_folded, next(csv.reader([first], delimiter=sign), []))]
        return {*needed} <= {*header, *(also.get(name, name) for name in header)}, len(header)

    return max(_SIGNS, key=fit)


def _folded(name: str) -> str:
    return name.strip().casefold()


def _without_nan(line: bytes) -> bytes:
    """Return a line with null in the place of NaN, as which Python's JSON writes a value that is missing."""
    with suppress(ValueError, RecursionError):
        return msgspec.json.encode(json.loads(line)) if b"NaN" in line else line
    return line


def as_text(value: Any) -> str | None:
    """Return a value as a text: JSON of what is no text."""
    return value if value is None or isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode()
