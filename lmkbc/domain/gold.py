"""Gold objects from rows of a query service: items with labels, numbers in the relation's unit, dates, and texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from typing import NamedTuple

from lmkbc.answer.dates import PartialDate, Precision
from lmkbc.answer.numbers import plain
from lmkbc.answer.units import converted, unit_of, unit_of_item
from lmkbc.domain.sparql import ENTITY, Row
from lmkbc.names import QID
from lmkbc.relation import Relation
from lmkbc.types import GoldObject, grouped

_ITEM = re.compile(rf"{re.escape(ENTITY)}({QID})")
_TIME = re.compile(r"([+-]?[0-9]{4,16})-([0-9]{2})-([0-9]{2})T.*")
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,127}\.?[0-9]{0,127}|\.[0-9]{1,127})(?:[eE][+-]?[0-9]{1,2})?")
"""Number of RDF, as long as Wikidata allows one. A few bytes of another one, as 1E+100000000, are gigabytes."""
_SMALL = re.compile("[0-9]{1,9}")
_TEXT = re.compile(r"[^\x00-\x1f\x7f-\x9f]{1,10000}")
"""Text that a label or a value may be: without control characters, and not endless."""
FINEST = 14
"""Precision of a second, the finest of Wikidata."""
JULIAN, NO_UNIT = "Q1985786", "Q199"


class LabelledSubject(NamedTuple):
    """A subject with all its objects. links: its number of sitelinks."""

    qid: str
    label: str
    links: int
    objects: tuple[GoldObject, ...]


class NoGoldError(ValueError):
    """A value or a subject that cannot be gold. Its text names the reason."""


def subjects(rows: Iterable[Row], relation: Relation) -> tuple[list[LabelledSubject], Counter[str]]:
    """Return the subjects of some rows whose objects are known whole, by QID, and how many are left out for a reason.

    Of several subjects with one label, only that with the most sitelinks is kept, since a question names the label.
    """
    made, left_out = list[LabelledSubject](), Counter[str]()
    for rows_of_subject in grouped((row["subject"], row) for row in rows).values():
        try:
            made.append(_subject(rows_of_subject, relation))
        except NoGoldError as reason:
            left_out[str(reason)] += 1
    made.sort(key=lambda subject: (subject.links, -number_of(subject.qid)))
    by_label = {subject.label: subject for subject in made}  # the last one of a label stays
    left_out += Counter({"label of a better known subject": len(made) - len(by_label)})
    return sorted(by_label.values(), key=lambda subject: number_of(subject.qid)), left_out


def _subject(rows: list[Row], relation: Relation) -> LabelledSubject:
    qid, label = _ITEM.fullmatch(rows[0]["subject"]), _named(rows[0], "label", "mul")
    if qid is None or not label:
        raise NoGoldError("no label" if qid else "a subject that is no item")
    values = {value.id: value for value in (_value(row, relation) for row in rows if "value" in row)}
    if bool(values) == (rows[0].get("none") in ("true", "1")):
        raise NoGoldError("both a value and 'no value'" if values else "deprecated values alone")
    links = rows[0].get("links", "0")
    objects = tuple(sorted(values.values(), key=lambda value: (value.names, value.id)))
    return LabelledSubject(qid[1], label, int(links) if _SMALL.fullmatch(links) else 0, objects)


def _named(row: Row, *variables: str) -> str:
    """Return the first readable label that a row has, with single blanks."""
    return next((name for variable in variables if (name := readable(row.get(variable, "")))), "")


def readable(text: str) -> str:
    """Return a text of a server with single blanks; "" if it has control characters or is too long."""
    text = " ".join(text.split())
    return text if _TEXT.fullmatch(text) else ""


def number_of(qid: str) -> int:
    """Return the number in a QID, by which items are sorted."""
    return int(qid[1:])


def _value(row: Row, relation: Relation) -> GoldObject:
    """Return the object of a row. NoGoldError if it is unknown, or has no form that a question can ask for."""
    text = readable(row["value"])
    if text.startswith("_:") or "/.well-known/genid/" in text:
        raise NoGoldError("an unknown value")
    if relation.kind == "entity":
        item, name = _ITEM.fullmatch(text), _named(row, "name", "nameMul")
        if item is None or not name:
            raise NoGoldError("an object without a label" if item else "an object that is no item")
        return GoldObject((name,), item[1])
    if relation.kind == "number":
        text = _amount(text, row.get("unit", ""), relation)
    elif "precision" in row:
        text = _date(text, row["precision"], row.get("calendar", ""))
    if not text:
        raise NoGoldError("an empty or unreadable text")
    return GoldObject((text,), text)


def _amount(text: str, unit: str, relation: Relation) -> str:
    """Return a number in the unit of the relation, in plain digits."""
    if not _NUMBER.fullmatch(text):
        raise NoGoldError("a value that is no number")
    number = Decimal(text)
    own, item = unit_of(relation.unit), unit.rpartition("/")[2]
    if own and item != relation.unit_id:
        source = unit_of_item(item)
        made = converted(number, source, own) if source else None
        if made is None:
            raise NoGoldError("a number without a unit" if item == NO_UNIT else "a number in another unit")
        number = made
    return plain(number)


def _date(text: str, exactness: str, model: str) -> str:
    """Return a date at its precision, as `PartialDate` writes it.

    RDF counts the year 1 BC as 0, and gives days of the Julian calendar in the Gregorian one.
    """
    parts, precision = _TIME.fullmatch(text), int(exactness) if _SMALL.fullmatch(exactness) else 0
    if precision > FINEST:
        raise NoGoldError("a date of an unknown precision")
    if parts is None or precision < Precision.DECADE:
        raise NoGoldError("a date coarser than a decade" if parts else "a value that is no date")
    year, month, day = map(int, parts.groups())
    if precision > Precision.MONTH and model.endswith(JULIAN):
        raise NoGoldError("a day or month of another calendar")
    try:
        date = PartialDate(abs(year) + (year < 1), month, day, Precision(min(precision, Precision.DAY)), year < 1)
    except ValueError:
        raise NoGoldError("a value that is no date") from None
    return str(date.at(date.precision))
