"""Dates at any precision, in each format with its own number of a year before Christ.

RDF counts as XML Schema 1.1 does: 44 BC is -0043, and days are Gregorian. Wikidata's JSON and QuickStatements have no
year 0: 44 BC is -0044, and a date before 1582 is in the Julian calendar. XML Schema has no type for a decade or a
century: they are intervals of EDTF, the Library of Congress's format of dates.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from lmkbc.kinds.dates import PartialDate, Precision, find_dates, one_of_spans, read_date
from lmkbc.kinds.kind import WITH_COMMAS, Described, Exported, Kind, KnownValue, LeftOutError, Match, Stated
from lmkbc.names import WIKIDATA_ITEM
from lmkbc.relation import EntityType, Relation
from lmkbc.words import FORM

GREGORIAN, JULIAN = f"{WIKIDATA_ITEM}Q1985727", f"{WIKIDATA_ITEM}Q1985786"
EDTF = "http://id.loc.gov/datatypes/edtf/EDTF"
CIRCA = "P1480", "Q5727902"
"""Wikidata's qualifier "sourcing circumstances", and its item "circa"."""
TYPES = {Precision.YEAR: "gYear", Precision.MONTH: "gYearMonth", Precision.DAY: "date"}
_PRECISIONS = {"dateTime": None} | {name: precision for precision, name in TYPES.items()}
_GREGORIAN, _JULIAN = (model.rpartition("/")[2] for model in (GREGORIAN, JULIAN))
FINEST = 14
"""Precision of a second, the finest of Wikidata."""
_RDF = re.compile(r"([+-]?[0-9]{4,16})(?:-([0-9]{2}))?(?:-([0-9]{2}))?(?:T.*|Z|[+-][0-9]{2}:[0-9]{2})?")
_INTERVAL = re.compile(r"(-?[0-9]{4,6})/(-?[0-9]{4,6})")


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
    hint = ", whether a subject has at most one (functional=True)"

    def read(self, text: str, relation: Relation) -> list[str]:
        """Return the dates that a text gives.

        Of at most one, two years that are near each other mean one between, and a longer span of "completed" its end.
        A date of a beginning is none of "completed" beside another one.
        """
        at_end = relation.functional and _is_of_an_end(relation.name, relation.question, relation.statement)
        text = one_of_spans(text, last=at_end) if relation.functional else text
        if whole := read_date(text):
            return [str(whole)]
        later = [*find_dates(FORM.begun.sub(" ", text))] if at_end else []
        return list(dict.fromkeys(map(str, later or find_dates(text))))

    def in_line(self, line: str, relation: Relation) -> list[str]:
        """Return the dates of a line."""
        return self.read(line, relation)

    def size(self, value: str) -> str | int | None:
        """Return the year."""
        date = read_date(value)
        return None if date is None else date.astronomical

    def meaning(self, text: str, relation: Relation) -> Hashable:
        """Return the date, or the only one that is read of a text, as of "late 19th century"."""
        return read_date(text) or (read_date(found[0]) if len(found := self.read(text, relation)) == 1 else None)

    def is_same(self, given: Any, true: Any, relation: Relation, *, coarser: bool) -> bool:
        """Return whether a date equals another one at the precision of that one, or if `coarser`, at their common."""
        if given is None or true is None:
            return False
        precision = min(given.precision, true.precision)
        return (precision == true.precision or coarser) and bool(given.at(precision) == true.at(precision))

    def votes(self, texts: Sequence[str]) -> Mapping[str, str]:
        """Return date -> the only more precise one that it does not contradict; "c. 1908" is a vote for 1908."""
        dates = {text: date for text in texts if (date := read_date(text))}
        finest = {text: _finest(date, dates) for text, date in dates.items()}
        return {text: only for text, only in finest.items() if only}

    def literal(self, texts: Sequence[str]) -> tuple[str | None, str | None]:
        """Return the date as `PartialDate` writes it."""
        date = read_date(texts[-1])
        return (str(date) if date else None), None

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

    def known(self, stated: Stated, about: Described) -> KnownValue | None:
        """Return a known date. A time without a precision on the first day of a year may be less precise."""
        if stated.precision is not None and stated.precision < Precision.CENTURY:
            return None
        exactness = "" if stated.precision is None else f"/{min(stated.precision, Precision.DAY)}"
        date = read_date(stated.text + exactness)
        if date is None:
            return None
        is_rough = stated.precision is None and "T" in stated.text and date.month == date.day == 1
        known = _Readings.of(date.at(Precision.YEAR) if is_rough else date, stated.calendar, is_rough=is_rough)
        return KnownValue(str(known.date), known)

    def compare(self, own: str, known: KnownValue, about: Described) -> Match:
        """Return what a date says beside a known one: days are compared in one calendar, and all else in both."""
        date, true = read_date(own), known.value
        if date is None:
            return Match.UNDECIDED
        given = _Readings.of(date, "")
        if given.day and true.day:
            return Match.SAME if given.day == true.day else Match.CONTRADICTS
        precision = min(date.precision, true.date.precision)
        if given.agrees(true, precision):
            if precision == date.precision == true.date.precision:
                return Match.SAME
            return Match.REFINES if date.precision > precision else Match.COMPATIBLE
        return Match.UNDECIDED if any(given.agrees(true, rough) for rough in true.rough) else Match.CONTRADICTS

    def gold(self, text: str, row: Mapping[str, str], relation: Relation) -> str:
        """Return a date of a query service, which writes RDF, at its precision."""
        stated, exactness = of_rdf(text, "dateTime"), row.get("precision", "")
        precision = int(exactness) if re.fullmatch("[0-9]{1,9}", exactness) else 0
        if precision > FINEST:
            raise LeftOutError("a date of an unknown precision")
        if stated is None or precision < Precision.DECADE:
            raise LeftOutError("a date coarser than a decade" if stated else "a value that is no date")
        if precision > Precision.MONTH and row.get("calendar", "").endswith(_JULIAN):
            raise LeftOutError("a day or month of another calendar")
        known = self.known(stated._replace(precision=precision, calendar=""), relation)
        if known is None:
            raise LeftOutError("a value that is no date")
        return known.text


@lru_cache(maxsize=256)
def _is_of_an_end(*words: str) -> bool:
    """Return whether a relation's words say that its dates are those at which something ends."""
    return any(map(FORM.at_end.search, words))


def _finest(date: PartialDate, dates: Mapping[str, PartialDate]) -> str:
    """Return the most precise of the dates within a date; "" if two of them differ, or none is more precise.

    Of two at one precision, the one without "circa" is.
    """
    within = {text: other for text, other in dates.items() if other.at(date.precision) == date.at(date.precision)}
    text, finest = max(within.items(), key=lambda pair: (pair[1].precision, not pair[1].circa))
    agree = all(finest.at(other.precision) == other.at(other.precision) for other in within.values())
    return text if agree and (finest.precision, not finest.circa) > (date.precision, not date.circa) else ""


def lexical(date: PartialDate) -> tuple[str, str]:
    """Return a date as text, and its datatype: of XML Schema, or EDTF's interval for a decade or a century."""
    year, month, day = gregorian(date)
    if date.precision in TYPES:
        parts = [_year(year), f"{month:02}", f"{day:02}"][: date.precision - Precision.YEAR + 1]
        return "-".join(parts), TYPES[date.precision]
    further = 9 if date.precision is Precision.DECADE else 99
    first, last = (year - further, year) if date.bce else (year, year + further)
    return f"{_year(first)}/{_year(last)}", EDTF


def of_rdf(text: str, datatype: str) -> Stated | None:
    """Return a literal as a time of Wikidata's JSON; None if it is no date. It is Gregorian, and 44 BC is -43.

    datatype: a name of XML Schema, or EDTF. A dateTime has no precision.
    """
    if datatype == EDTF and (interval := _INTERVAL.fullmatch(text)):
        first, last = map(int, interval.groups())
        precision = Precision.CENTURY if last - first > 9 else Precision.DECADE
        return Stated(_time(last if last < 1 else first, 0, 0), None, precision, _GREGORIAN)
    if datatype not in _PRECISIONS or (time := _RDF.fullmatch(text)) is None:
        return None
    year, month, day = (int(part or 0) for part in time.groups())
    return Stated(_time(year, month, day), None, _PRECISIONS[datatype], _GREGORIAN)


def _time(year: int, month: int, day: int) -> str:
    """Return a time as in Wikidata's JSON. year: astronomical."""
    return f"{'+' if year > 0 else '-'}{year if year > 0 else 1 - year:04}-{month:02}-{day:02}T00:00:00Z"


def _year(year: int) -> str:
    return f"{'-' if year < 0 else ''}{abs(year):04}"


def gregorian(date: PartialDate) -> tuple[int, int, int]:
    """Return the astronomical year, the month and the day of a date. A Julian day becomes the Gregorian one."""
    year, month = date.astronomical, date.month
    return _moved(year, month, date.day, 1) if date.day and date.is_julian else (year, month, date.day)


def _moved(year: int, month: int, day: int, sign: int) -> tuple[int, int, int]:
    """Return a Julian day in the Gregorian calendar for the sign 1, and a Gregorian one in the Julian for -1."""
    counted, repeated = year - (month < 3), year % 400 + 400  # Gregorian days repeat after 400 years
    ahead = counted // 100 - counted // 400 - 2
    moved = datetime.date(repeated, month, 1) + datetime.timedelta(day - 1 + sign * ahead)
    return year + moved.year - repeated, moved.month, moved.day


@dataclass(frozen=True)
class _Readings:
    """A date as it may be read. day: astronomical year, month and day in the Gregorian calendar; None if it is no day.

    readings: the date in both calendars. rough: lower precisions that it may have instead.
    """

    date: PartialDate
    day: tuple[int, int, int] | None
    readings: tuple[PartialDate, ...]
    rough: tuple[Precision, ...] = ()

    @classmethod
    def of(cls, date: PartialDate, calendar: str, *, is_rough: bool = False) -> _Readings:
        """Return a date of a calendar's item; "" for the usual one of its time."""
        if not date.day:
            year = date.astronomical
            ends = ((Precision.DECADE, year % 10 == 0), (Precision.CENTURY, year % 100 < 2))
            return cls(date, None, (date,), tuple(rough for rough, is_end in ends if is_rough and is_end))
        written = date.astronomical, date.month, date.day
        is_julian = date.is_julian if not calendar else calendar == _JULIAN
        day = _moved(*written, 1) if is_julian else written
        readings = {written, day, _moved(*day, -1)}
        months = list[PartialDate]()
        for year, month, _ in readings:
            with suppress(ValueError):  # the last day of all in the other calendar
                months.append(PartialDate(abs(year) + (year < 1), month, 0, Precision.MONTH, year < 1))
        return cls(date, day, tuple(months))

    def agrees(self, other: _Readings, precision: Precision) -> bool:
        """Return whether two dates agree at a precision in some calendar."""
        own = {reading.at(precision) for reading in self.readings}
        return not own.isdisjoint(reading.at(precision) for reading in other.readings)


DATE = Date()
