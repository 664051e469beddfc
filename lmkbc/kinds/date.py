"""Dates at any precision, in each format with its own number of a year before Christ.

RDF counts as XML Schema 1.1 does: 44 BC is -0043, and days are Gregorian. Wikidata's JSON and QuickStatements have no
year 0: 44 BC is -0044, and a date before 1582 is in the Julian calendar. XML Schema has no type for a decade or a
century: they are intervals of EDTF, the Library of Congress's format of dates.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from lmkbc.kinds.dates import PartialDate, Precision, find_dates, read_date
from lmkbc.kinds.kind import WITH_COMMAS, Described, Exported, Kind, KnownValue, LeftOutError
from lmkbc.names import WIKIDATA_ITEM
from lmkbc.relation import EntityType, Relation

GREGORIAN, JULIAN = f"{WIKIDATA_ITEM}Q1985727", f"{WIKIDATA_ITEM}Q1985786"
EDTF = "http://id.loc.gov/datatypes/edtf/EDTF"
CIRCA = "P1480", "Q5727902"
"""Wikidata's qualifier "sourcing circumstances", and its item "circa"."""
TYPES = {Precision.YEAR: "gYear", Precision.MONTH: "gYearMonth", Precision.DAY: "date"}
FINEST = 14
"""Precision of a second, the finest of Wikidata."""
_TIME = re.compile(r"([+-]?[0-9]{4,16})-([0-9]{2})-([0-9]{2})T.*")


class Date(Kind):
    """Dates. Two of one precision are the same if they are equal; "circa" does not matter."""

    name = "date"
    has_values = holds_marks = asks_when = True
    fields = frozenset("date year time".split())
    example = "'1985', '1985-10' or '1985-10-12'"
    data_types = ("time",)
    type = EntityType("date", "Q205892")
    shape = WITH_COMMAS
    form = ", as precisely as is known: the year, the month and year, or the day."

    def read(self, text: str, relation: Relation) -> list[str]:
        """Return the dates that a text gives."""
        whole = read_date(text)
        return list(dict.fromkeys(map(str, [whole] if whole else find_dates(text))))

    def in_line(self, line: str, relation: Relation) -> list[str]:
        """Return the dates of a line."""
        return self.read(line, relation)

    def size(self, value: str) -> str | int | None:
        """Return the year."""
        date = read_date(value)
        return None if date is None else date.astronomical

    def meaning(self, text: str, relation: Relation) -> Hashable:
        """Return the date."""
        return read_date(text)

    def is_same(self, given: Any, true: Any, relation: Relation, *, coarser: bool) -> bool:
        """Return whether a date equals another one at the precision of that one, or if `coarser`, at their common."""
        if given is None or true is None:
            return False
        precision = min(given.precision, true.precision)
        return (precision == true.precision or coarser) and bool(given.at(precision) == true.at(precision))

    def votes(self, texts: Sequence[str]) -> Mapping[str, str]:
        """Return date -> the only more precise one that it does not contradict."""
        dates = {text: date for text in texts if (date := read_date(text))}
        finest = {text: _finest(date, dates) for text, date in dates.items()}
        return {text: only for text, only in finest.items() if only}

    def literal(self, texts: Sequence[str]) -> tuple[str | None, str | None]:
        """Return the date as `PartialDate` writes it."""
        date = read_date(texts[-1])
        return (str(date) if date else None), None

    def known_key(self, literal: str | None) -> str | None:
        """Return the date without "circa"."""
        return str(date.at(date.precision)) if (date := read_date(literal or "")) else None

    def exported(self, value: str | None, about: Described) -> Exported:
        """Return a date."""
        if (date := read_date(value or "")) is None:
            raise LeftOutError("no readable date")
        written = f"{'-' if date.bce else '+'}{date.year:04}-{date.month:02}-{date.day:02}T00:00:00Z"
        calendar, precision = JULIAN if date.is_julian else GREGORIAN, int(date.precision)
        zeros = {"timezone": 0, "before": 0, "after": 0}
        time = {"time": written, **zeros, "precision": precision, "calendarmodel": calendar}
        year, month, day = gregorian(date)
        of_node = [
            ("timeValue", f"{_year(year)}-{month or 1:02}-{day or 1:02}T00:00:00Z", "dateTime"),
            ("timePrecision", str(precision), "integer"),
            ("timeTimezone", "0", "integer"),
            ("timeCalendarModel", calendar, "iri"),
        ]
        return Exported(
            *lexical(date),
            ("time", {"type": "time", "value": time}),
            f"{written}/{precision}{'/J' * date.is_julian}",
            precision=date.precision.name.lower(),
            approximate=date.circa,
            node=("TimeValue", of_node),
            node_key=str(date.at(date.precision)),
            qualifier=CIRCA if date.circa else (),
        )

    def known(self, text: str, unit: str | None, about: Described) -> KnownValue | None:
        """Return what a known date states: itself, and all that is less precise."""
        date = read_date(text)
        return KnownValue(frozenset(str(date.at(precision)) for precision in Precision)) if date else None

    def gold(self, text: str, row: Mapping[str, str], relation: Relation) -> str:
        """Return a date of a query service at its precision.

        RDF counts the year 1 BC as 0, and gives days of the Julian calendar in the Gregorian one.
        """
        parts, exactness = _TIME.fullmatch(text), row.get("precision", "")
        precision = int(exactness) if re.fullmatch("[0-9]{1,9}", exactness) else 0
        if precision > FINEST:
            raise LeftOutError("a date of an unknown precision")
        if parts is None or precision < Precision.DECADE:
            raise LeftOutError("a date coarser than a decade" if parts else "a value that is no date")
        year, month, day = map(int, parts.groups())
        if precision > Precision.MONTH and row.get("calendar", "").endswith(JULIAN.rpartition("/")[2]):
            raise LeftOutError("a day or month of another calendar")
        try:
            date = PartialDate(abs(year) + (year < 1), month, day, Precision(min(precision, Precision.DAY)), year < 1)
        except ValueError:
            raise LeftOutError("a value that is no date") from None
        return str(date.at(date.precision))


def _finest(date: PartialDate, dates: Mapping[str, PartialDate]) -> str:
    """Return the most precise of the dates within a date; "" if two of them differ, or none is more precise."""
    within = {text: other for text, other in dates.items() if other.at(date.precision) == date.at(date.precision)}
    text, finest = max(within.items(), key=lambda pair: pair[1].precision)
    agree = all(finest.at(other.precision) == other.at(other.precision) for other in within.values())
    return text if agree and finest.precision > date.precision else ""


def lexical(date: PartialDate) -> tuple[str, str]:
    """Return a date as text, and its datatype: of XML Schema, or EDTF's interval for a decade or a century."""
    year, month, day = gregorian(date)
    if date.precision in TYPES:
        parts = [_year(year), f"{month:02}", f"{day:02}"][: date.precision - Precision.YEAR + 1]
        return "-".join(parts), TYPES[date.precision]
    further = 9 if date.precision is Precision.DECADE else 99
    first, last = (year - further, year) if date.bce else (year, year + further)
    return f"{_year(first)}/{_year(last)}", EDTF


def _year(year: int) -> str:
    return f"{'-' if year < 0 else ''}{abs(year):04}"


def gregorian(date: PartialDate) -> tuple[int, int, int]:
    """Return the astronomical year, the month and the day of a date. A Julian day becomes the Gregorian one."""
    year, month = date.astronomical, date.month
    if not date.day or not date.is_julian:
        return year, month, date.day
    counted, repeated = year - (month < 3), year % 400 + 400  # Gregorian days repeat after 400 years
    ahead = counted // 100 - counted // 400 - 2
    day = datetime.date(repeated, month, 1) + datetime.timedelta(date.day - 1 + ahead)
    return year + day.year - repeated, day.month, day.day


DATE = Date()
