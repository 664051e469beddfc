"""Gold objects from rows of a query service: items with labels, numbers in the relation's unit, dates, and texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from lmkbc.domain.sparql import Row
from lmkbc.kinds.kind import LeftOutError, Match, Stated, kind_of
from lmkbc.names import QID, WIKIDATA_ITEM
from lmkbc.relation import Relation
from lmkbc.types import GoldObject, grouped

_ITEM = re.compile(rf"{re.escape(WIKIDATA_ITEM)}({QID})")
_SMALL = re.compile("[0-9]{1,9}")
_TEXT = re.compile(r"[^\x00-\x1f\x7f-\x9f]{1,10000}")
"""Text that a label or a value may be: without control characters, and not endless."""


class LabelledSubject(NamedTuple):
    """A subject with all its objects. links: its number of sitelinks."""

    qid: str
    label: str
    links: int
    objects: tuple[GoldObject, ...]


def subjects(rows: Iterable[Row], relation: Relation) -> tuple[list[LabelledSubject], Counter[str]]:
    """Return the subjects of some rows whose objects are known whole, by QID, and how many are left out for a reason.

    Of several subjects with one label, only that with the most sitelinks is kept, since a question names the label.
    """
    made, left_out = list[LabelledSubject](), Counter[str]()
    for rows_of_subject in grouped((row["subject"], row) for row in rows).values():
        try:
            made.append(_subject(rows_of_subject, relation))
        except LeftOutError as reason:
            left_out[str(reason)] += 1
    made.sort(key=lambda subject: (subject.links, -number_of(subject.qid)))
    by_label = {subject.label: subject for subject in made}  # the last one of a label stays
    left_out += Counter({"label of a better known subject": len(made) - len(by_label)})
    return sorted(by_label.values(), key=lambda subject: number_of(subject.qid)), left_out


def _subject(rows: list[Row], relation: Relation) -> LabelledSubject:
    qid, label = _ITEM.fullmatch(rows[0]["subject"]), _named(rows[0], "label", "mul")
    if qid is None or not label:
        raise LeftOutError("no label" if qid else "a subject that is no item")
    values: dict[str | None, GoldObject] = {
        value.id: value for value in (_value(row, relation) for row in rows if "value" in row)
    }
    if bool(values) == (rows[0].get("none") in ("true", "1")):
        raise LeftOutError("both a value and 'no value'" if values else "deprecated values alone")
    if (kind := kind_of(relation)).has_values:
        known = {text: kind.known(Stated(text), relation) for text in values if text}
        less = [
            text
            for text in known
            for other in known.values()
            if other and kind.compare(text, other, relation) is Match.COMPATIBLE
        ]
        values = {text: value for text, value in values.items() if text not in less}
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
    """Return the object of a row. LeftOutError if it is unknown, or has no form that a question can ask for."""
    text = readable(row["value"])
    if text.startswith("_:") or "/.well-known/genid/" in text:
        raise LeftOutError("an unknown value")
    if relation.has_entities():
        item, name = _ITEM.fullmatch(text), _named(row, "name", "nameMul")
        if item is None or not name:
            raise LeftOutError("an object without a label" if item else "an object that is no item")
        return GoldObject((name,), item[1])
    if not (text := kind_of(relation).gold(text, row, relation)):
        raise LeftOutError("an empty or unreadable text")
    return GoldObject((text,), text)
