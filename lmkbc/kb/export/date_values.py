"""Dates of facts in the formats of exports, each with its own numbers of years before Christ.

RDF counts as XML Schema 1.1 does: 44 BC is -0043, and days are Gregorian. Wikidata's JSON and QuickStatements have no
year 0: 44 BC is -0044, and a date before 1582 is in the Julian calendar.
"""

from __future__ import annotations

import datetime
from typing import Any

from lmkbc.answer.dates import PartialDate, Precision, read_date
from lmkbc.kb.build.knowledge import FactRow
from lmkbc.kb.export.left_out import LeftOutError

GREGORIAN, JULIAN = "http://www.wikidata.org/entity/Q1985727", "http://www.wikidata.org/entity/Q1985786"
EDTF = "http://id.loc.gov/datatypes/edtf/EDTF"
NATURE, CIRCA = "P1480", "Q5727902"
"""Wikidata's qualifier "sourcing circumstances", and its item "circa"."""
TYPES = {Precision.YEAR: "gYear", Precision.MONTH: "gYearMonth", Precision.DAY: "date"}


def date_of(fact: FactRow) -> PartialDate | None:
    """Return a fact's date; None if its objects are no dates. LeftOutError for a date that cannot be read."""
    if fact.about.kind != "date":
        return None
    if (date := read_date(fact.literal or "")) is None:
        raise LeftOutError("no readable date")
    return date


def exact(fact: FactRow) -> str | None:
    """Return a fact's number or date, None if it has none; a date is not approximate, as among known dates."""
    if fact.about.kind != "date":
        return fact.literal
    return str(date.at(date.precision)) if (date := read_date(fact.literal or "")) else None


def lexical(date: PartialDate) -> tuple[str, str]:
    """Return a date as text, and its datatype: of XML Schema, or EDTF's interval for a decade or a century."""
    year, month, day = _gregorian(date)
    if date.precision in TYPES:
        parts = [_year(year), f"{month:02}", f"{day:02}"][: date.precision - Precision.YEAR + 1]
        return "-".join(parts), TYPES[date.precision]
    further = 9 if date.precision is Precision.DECADE else 99
    first, last = (year - further, year) if date.bce else (year, year + further)
    return f"{_year(first)}/{_year(last)}", EDTF


def moment(date: PartialDate) -> str:
    """Return the first moment of a date, as Wikidata's RDF writes it."""
    year, month, day = _gregorian(date)
    return f"{_year(year)}-{month or 1:02}-{day or 1:02}T00:00:00Z"


def calendar(date: PartialDate) -> str:
    """Return the address of the calendar that a date is in."""
    return JULIAN if date.is_julian else GREGORIAN


def _written(date: PartialDate) -> str:
    return f"{'-' if date.bce else '+'}{date.year:04}-{date.month:02}-{date.day:02}T00:00:00Z"


def time_value(date: PartialDate) -> dict[str, Any]:
    """Return a date as the value of a statement in Wikidata's JSON."""
    zeros = {"timezone": 0, "before": 0, "after": 0}
    return {"time": _written(date), **zeros, "precision": int(date.precision), "calendarmodel": calendar(date)}


def timestamp(date: PartialDate) -> str:
    """Return a date as QuickStatements writes it, with its precision, and "/J" for the Julian calendar."""
    return f"{_written(date)}/{int(date.precision)}{'/J' * date.is_julian}"


def known_dates(text: str) -> set[str]:
    """Return what a known date states: itself, and all that is less precise."""
    if (date := read_date(text)) is None:
        return set()
    return {str(date.at(precision)) for precision in Precision}


def _year(year: int) -> str:
    return f"{'-' if year < 0 else ''}{abs(year):04}"


def _gregorian(date: PartialDate) -> tuple[int, int, int]:
    """Return the astronomical year, the month and the day of a date. A Julian day becomes the Gregorian one."""
    year, month = date.astronomical, date.month
    if not date.day or not date.is_julian:
        return year, month, date.day
    counted, repeated = year - (month < 3), year % 400 + 400  # Gregorian days repeat after 400 years
    ahead = counted // 100 - counted // 400 - 2
    day = datetime.date(repeated, month, 1) + datetime.timedelta(date.day - 1 + ahead)
    return year + day.year - repeated, day.month, day.day
