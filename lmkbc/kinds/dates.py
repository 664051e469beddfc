"""Dates as answers state them: days, months, years, decades and centuries, before and after Christ.

The names of months and eras in `LANGUAGES` come from CLDR, Unicode's data on languages, through Babel. The libraries
that parse dates do not suit: they give no precision or no year before Christ, or they guess where a date is ambiguous.

What is ambiguous is read as far as all readings agree. "03/04/1985" is 1985, since some read it as 3 April, others as 4
March. "12 listopada 1985" is 1985 too, since it is November in Polish and October in Croatian. "1900s" is a century.
Numbers with dots have the day first, as in every language of CLDR. Signed years are those of ISO 8601 ("-0043" is 44
BC), except in Wikidata's form with a time of day, which knows no year 0 ("-0044-00-00T00:00:00Z").
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cache, lru_cache

from lmkbc.errors import refuse
from lmkbc.names import folded_key
from lmkbc.words import FORM, WORDS, replaced

LANGUAGES = (
    "en de de_AT fr es es_PE it nl pt ca ro pl cs sk sl hr sr bg ru uk el sv da nb fi et lv lt hu tr he hi "
    "ar ar_SY ar_DZ ar_MA"
).split()
"""Languages whose months and eras are read, by their codes, and countries with other names of months."""
DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
REFORM = (1582, 10, 15)
"""First day of the Gregorian calendar; dates before it are in the Julian one, as in Wikidata."""
NEAR = 10
"""Most years between two that are given for one."""
LONGEST = 20_000
"""Maximum number of characters that are read."""


class Precision(IntEnum):
    """Precision of a date, by Wikidata's numbers."""

    CENTURY = 7
    DECADE = 8
    YEAR = 9
    MONTH = 10
    DAY = 11


@dataclass(frozen=True, slots=True)
class PartialDate:
    """A date as precise as it was stated.

    year: counted from 1 in both eras; the first year of a century (1801 for the 19th), and that of a decade which ends
    in 0. month, day: 0 if not stated. bce: whether it is before Christ. circa: whether it is approximate.
    """

    year: int
    month: int = 0
    day: int = 0
    precision: Precision = Precision.YEAR
    bce: bool = False
    circa: bool = False

    def __post_init__(self) -> None:
        """Raise ValueError for a date that no calendar has."""
        refuse(
            (self.year < (self.precision != Precision.DECADE), "there is no year 0"),
            (self.year > (999_999 if self.bce else 9999), f"year {self.year} is out of range"),
            (not 0 <= self.month <= 12, f"month {self.month} is out of range"),
            (bool(self.day) and not 1 <= self.day <= self._days(), f"day {self.day} is out of range"),
        )

    @property
    def is_julian(self) -> bool:
        """Return whether the date is before the Gregorian calendar."""
        return self.bce or (self.year, self.month or 1, self.day or 1) < REFORM

    @property
    def astronomical(self) -> int:
        """Return the year as ISO 8601 and XSD 1.1 count: 1 BC is 0, and 44 BC is -43."""
        return 1 - self.year if self.bce else self.year

    def _days(self) -> int:
        """Return the number of days of the month; 0 if there is no such month."""
        year = self.astronomical
        leap = year % 4 == 0 and (self.is_julian or year % 100 != 0 or year % 400 == 0)
        return (*DAYS, 0)[min(self.month, 13) - 1] - (self.month == 2 and not leap)

    def at(self, precision: Precision) -> PartialDate:
        """Return the date at most as precise as given, and not approximate."""
        precision = min(precision, self.precision)
        year = self.year
        if precision is Precision.DECADE:
            year -= year % 10
        elif precision is Precision.CENTURY:  # most years of the decade 1900 are of the 20th century
            year = (year + (self.precision is Precision.DECADE) - 1) // 100 * 100 + 1
        month = self.month if precision >= Precision.MONTH else 0
        return PartialDate(year, month, self.day if precision is Precision.DAY else 0, precision, self.bce)

    def __str__(self) -> str:
        """Return the date as text, which `read_date` reads: "1985-10-12", "c. 1985", "1980s", "0044-03-15 BC"."""
        if self.precision is Precision.CENTURY:
            number = self.year // 100 + 1
            teens = number % 100 in (11, 12, 13)
            text = f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')} century"
        elif self.precision is Precision.DECADE:
            text = f"{self.year}s" + ("" if self.year % 100 else " (decade)")
        elif self.month:
            text = f"{self.year:04}-{self.month:02}" + (f"-{self.day:02}" if self.day else "")
        else:
            text = str(self.year)
        early = self.year < 100 and self.precision in (Precision.DECADE, Precision.YEAR)
        return ("c. " if self.circa else "") + text + (" BC" if self.bce else " AD" if early else "")


_BC, _AD, _MONTH = "\ue000", "\ue001", "\ue002"
"""Signs that replace eras and the names of months before a text is read; a month has two digits behind its sign."""
_WORD = re.compile(r"((?<!\d)\d{1,2}\.?\s(?:de\s)?)?([^\W\d_]{2,})(\.?)")
_PLAIN = str.maketrans({"’": "'", "−": "-", "‑": "-", "ı": "i", "İ": "I"})
"""Signs -> their plain forms; patterns take "ı" and "İ" for "i" where case does not count."""
_NO_MONTHS = frozenset(("out", "set", "ago"))
"""Words that abbreviate months in Portuguese and Italian, and are English words."""


@cache
def _months() -> dict[str, int]:
    """Return the number of the month that a folded name means; 0 if it means different ones in two languages.

    An abbreviation in another language than English has a dot behind it.
    """
    from babel import Locale

    months: dict[str, int] = {}
    for language in LANGUAGES:
        for context in Locale.parse(language).months.values():
            for width, dotted in (("wide", False), ("abbreviated", language != "en")):
                for number, name in context.get(width, {}).items():
                    for form in (name, *([f"ב{name}"] if language == "he" else [])):  # "in", which is no word there
                        key = folded_key(form.translate(_PLAIN)) + "." * dotted
                        months[key] = number if months.get(key, number) == number else 0
    return {"sept": 9, "mrz": 3, "feber": 2, **months}


@cache
def _long_months() -> re.Pattern[str]:
    """Return a pattern of months of more than one word, or with signs that are no letters."""
    from babel import Locale

    names = {name for code in LANGUAGES for name in Locale.parse(code).months["format"]["wide"].values()}
    long = sorted((name for name in names if not name.isalpha()), key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, long))})(?!\w)")


@cache
def _eras() -> re.Pattern[str]:
    """Return a pattern of eras, in which the group "bc" is one before Christ. "i. e." is not read as Hungarian."""
    from babel import Locale

    eras = [Locale.parse(language).eras[width] for language in LANGUAGES for width in ("wide", "abbreviated")]
    before, after = (
        "|".join(re.sub(r"(?:\\[\s\xa0])+", r"\\s*", re.escape(word.replace(".", ". ").strip(". "))) for word in words)
        for number, name in enumerate(("before_christ", "after_christ"))
        for words in [sorted({*WORDS[name], *(era[number] for era in eras)} - {"i. e."}, key=len, reverse=True)]
    )
    return re.compile(
        rf"(?<![^\W\d_])(?:(?P<bc>B\.?\s?C\.?(?:\s?E\b\.?)?|(?:{before})\.?)|C\.?\s?E\.?|A\.?\s?D\.?|(?:{after})\.?)(?![^\W\d_])",
        re.IGNORECASE,
    )


def _with_signs(text: str) -> str:
    """Return a text with signs for eras and months, and single blanks."""
    text = unicodedata.normalize("NFC", re.sub("[\ue000-\uf8ff]", " ", text[:LONGEST]))
    text = " ".join(text.translate(_PLAIN).split())
    text = replaced(text, "dates")
    if not any(char.isalpha() for char in text.replace("T", "").replace("Z", "")):
        return text
    text = _long_months().sub(lambda name: f"{_MONTH}{_months()[folded_key(name[0])]:02}", text)
    text = _WORD.sub(_month, _eras().sub(lambda era: f" {_BC if era['bc'] else _AD} ", text))
    return FORM.month_twice.sub(r"\1", " ".join(text.split()))


def _month(found: re.Match[str]) -> str:
    """Return a word as a month. An abbreviation in another language than English counts behind a day, or with a dot."""
    day, word, months = found[1] or "", folded_key(found[2]), _months()
    number = months.get(word)
    if number is None and (day or (found[3] and word not in _NO_MONTHS)):
        number = months.get(f"{word}.")
    return found[0] if number is None else f"{day}{_MONTH}{number:02}"


@lru_cache(maxsize=1 << 14)
def read_date(text: str) -> PartialDate | None:
    """Return the date that a text is; None if it is none, holds more than a date, or no calendar has it."""
    found = FORM.date_alone.fullmatch(_with_signs(text).strip())
    return _made(found, least=3) if found else None


def one_of_spans(text: str, *, last: bool) -> str:
    """Return a text with "c. 1890" for "between 1889 and 1891", "1889–1891" and "1890 or 1891".

    A span of more than NEAR years, or of more than two with a mere dash or "to", has a beginning and an end. Both stay,
    or the end alone if `last`.
    """

    def one(span: re.Match[str]) -> str:
        first, *_, short = filter(None, span.groups())
        end = int(first[: 4 - len(short)] + short)
        years, most = end - int(first), 2 if span["mere"] else NEAR
        if last and years > most:
            return str(end)
        return f"c. {int(first) + years // 2}" if 0 < years <= most else span[0]

    return FORM.date_span.sub(one, text[:LONGEST])


def find_dates(text: str) -> Iterator[PartialDate]:
    """Yield the dates that a text names, in order. A bare year in prose has four digits, and is before 2100.

    A mere bound, as in "before 1900", is no date.
    """
    plain = _with_signs(text)
    for match in FORM.date_within.finditer(plain):
        before = plain[max(0, match.start() - 40) : match.start()]
        if (
            (date := _made(match, least=4))
            and not FORM.bound.search(before)
            and not FORM.bound_behind.match(plain, match.end())
        ):
            yield date


def _made(found: re.Match[str], least: int) -> PartialDate | None:
    """Return the date of a match; None if it has none. least: number of digits of a year without an era."""
    parts = {key.partition("_")[0]: text for key, text in found.groupdict().items() if text}
    month, day = int(parts.get("month", 0)), int(parts.get("day", 0))
    era = parts.get("after") or parts.get("before", "")
    bce, precision = era == _BC, Precision.DAY if day else Precision.MONTH if month else Precision.YEAR
    if century := parts.get("century"):
        year, precision = 100 * _numeral(century) - 99, Precision.CENTURY
    elif decade := parts.get("decade"):
        year, precision = int(decade), Precision.DECADE
        if len(decade) == 2 and not era:  # the 80s are the 1980s, and the 00s the 2000s
            year += 1900 if year else 2000
        if year and year % 100 == 0 and "explicit" not in parts:
            year, precision = year + 1, Precision.CENTURY
    else:
        year = int(parts["year"])
        if not era and "sign" not in parts and len(parts["year"]) < least:
            return None
        if least > 3 and parts.keys() <= {"year", "circa"} and not 1000 <= year < 2100:
            return None
    if sign := parts.get("sign"):
        bce = sign == "-"
        year += bce and "time" not in parts
    if stated := parts.get("precision"):
        precision = Precision(int(stated)) if 7 <= int(stated) <= precision else precision
    if "first" in parts:
        month, day = _ordered(int(parts["first"]), int(parts["second"]), parts["mark"])
        precision = Precision.DAY if day else Precision.YEAR
    try:
        whole = PartialDate(
            year, month, day if month else 0, min(precision, Precision.DAY if month else Precision.YEAR), bce
        )
    except ValueError:
        return None
    return replace(whole.at(precision), circa="circa" in parts)


def _ordered(first: int, second: int, mark: str) -> tuple[int, int]:
    """Return month and day of a numeric date; zeros if both orders are possible and give different dates."""
    if second > 12:
        return first, second
    if mark == "." or first > 12 or first == second:
        return second, first
    return 0, 0


def _numeral(text: str) -> int:
    """Return the value of a number in Arabic or Roman digits."""
    if text.isdecimal():
        return int(text)
    values = [{"i": 1, "v": 5, "x": 10}[char] for char in text.lower()]
    return sum(-value if value < max(values[place:]) else value for place, value in enumerate(values))
