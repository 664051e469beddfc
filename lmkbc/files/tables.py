"""Tables of text as CSV: what is written is no formula of a spreadsheet, and the sign that parts a header."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

SEPARATORS = ",;\t"
_NUMBER = r"^[+-]?([0-9][0-9,]*\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
FORMULA = "'*[=+\\-@\t\r\n\uff0b\uff0d\uff1d\uff20]"
"""Beginning of a formula of a spreadsheet, with apostrophes of our own or of the text."""
_CONTROL = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"


def comma_separated(frame: pl.DataFrame, *, header: bool = True) -> str:
    """Return a data frame as CSV in which no text is a formula of a spreadsheet.

    An apostrophe stands before a text that begins as a formula and is no number. Our reader of CSV takes it off.
    Control characters are replaced, except tabs and ends of lines. Source: OWASP, "CSV injection".
    """
    import polars as pl
    import polars.selectors as cs

    text = cs.string().str.replace_all(_CONTROL, "\N{REPLACEMENT CHARACTER}")
    inert = ~text.str.contains(f"^{FORMULA}") | text.str.contains(_NUMBER)
    return frame.with_columns(pl.when(inert).then(text).otherwise(pl.lit("'") + text)).write_csv(include_header=header)


def separator(start: bytes, needed: Iterable[str]) -> str:
    """Return the sign that parts the header of CSV into the columns that are needed; else a comma."""
    lines = (line for line in start.decode("utf-8", "replace").splitlines() if not line.startswith("sep="))
    first = next(filter(str.strip, lines), "")
    parted = ((one, next(csv.reader([first], delimiter=one), [])) for one in SEPARATORS)
    return next((one for one, header in parted if {*needed} <= {*map(folded, header)}), ",")


def folded(name: str) -> str:
    """Return the name of a column without case and blanks around it."""
    return name.strip().casefold()
