"""Facts as Wikidata writes them: numbers in its units, and JSON, an array with one entity per line, as in its dumps.

An object without an item becomes a statement of an unknown value, with the qualifier "object named as". A subject
without an item becomes a new entity without an id. No statement has a reference: a model is no source, and "based on
heuristic" (P887) would look like one. A name that Wikidata does not accept is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from lmkbc.answer.units import converted, item_of_unit, unit_at, unit_of, unit_of_item
from lmkbc.errors import InputError
from lmkbc.kb.build.facts import decimal
from lmkbc.kb.build.knowledge import About, FactRow
from lmkbc.kb.export.date_values import CIRCA, NATURE, date_of, time_value
from lmkbc.kb.export.left_out import ExportTally, LeftOutError

ENTITY = "http://www.wikidata.org/entity/"
TEXTS = {"string": "string", "url": "url", "identifier": "external-id"}
"""Kind of texts -> datatype of Wikidata's properties."""
ADDRESS = re.compile(r"https?://[^\x00-\x20<>\"{}|^`\\\x7f-\x9f]+")
"""Pattern of a web address."""
NAMED_AS = "P1932"
"""Wikidata's property "object named as"."""
LANGUAGE = "mul"
"""Language code of a name that is the same in all languages."""
Json = dict[str, Any]


def entity(facts: Sequence[FactRow], tally: ExportTally) -> Json | None:
    """Return the entity of one subject's facts; None if none of them can be written."""
    claims: dict[str, list[Json]] = {}
    for statement in tally.written(facts, _statement):
        claims.setdefault(statement["mainsnak"]["property"], []).append(statement)
    if not claims:
        return None
    first = facts[0]
    if first.subject_id is not None:
        return {"type": "item", "id": first.subject_id, "claims": claims}
    label = {"language": LANGUAGE, "value": plain(first.subject)}
    return {"type": "item", "labels": {LANGUAGE: label}, "claims": claims}


def _statement(fact: FactRow) -> Json:
    about, more, datatype, name = fact.about, Json(), "wikibase-item", plain(fact.object)
    value: Json | None = None
    check_property(fact)
    if fact.subject_id is None and not plain(fact.subject):
        raise LeftOutError("no name that Wikidata accepts")
    if about.kind in TEXTS:
        check_text(fact, bool(name))
        datatype, value = TEXTS[about.kind], {"type": "string", "value": name}
    elif date := date_of(fact):
        datatype, value = "time", {"type": "time", "value": time_value(date)}
        more = _qualified(NATURE, "wikibase-item", _item(CIRCA)) if date.circa else more
    elif number := quantity(fact):
        unit = f"{ENTITY}{number[1]}" if number[1] else "1"
        datatype, value = "quantity", {"type": "quantity", "value": {"amount": signed(number[0]), "unit": unit}}
    elif fact.object_id is not None:
        value = _item(fact.object_id)
    elif name:
        more = _qualified(NAMED_AS, "string", {"type": "string", "value": name})
    else:
        raise LeftOutError("no name that Wikidata accepts")
    mainsnak = _snak(about.property, datatype, value)
    return {"mainsnak": mainsnak, "type": "statement", "rank": "normal", **more}


def _item(qid: str) -> Json:
    return {"type": "wikibase-entityid", "value": {"entity-type": "item", "numeric-id": int(qid[1:]), "id": qid}}


def _qualified(name: str, datatype: str, value: Json) -> Json:
    """Return the fields of a statement with one qualifier."""
    return {"qualifiers": {name: [_snak(name, datatype, value)]}, "qualifiers-order": [name]}


def _snak(name: str, datatype: str, value: Json | None) -> Json:
    """Return property and value; None stands for an unknown value ("somevalue")."""
    if value is None:
        return {"snaktype": "somevalue", "property": name, "datatype": datatype}
    return {"snaktype": "value", "property": name, "datavalue": value, "datatype": datatype}


def check_property(fact: FactRow) -> None:
    """Raise LeftOutError for a fact of a relation that is of no property of Wikidata."""
    if not fact.about.is_of_wikidata():
        raise LeftOutError("no property of Wikidata")


def check_text(fact: FactRow, is_accepted: bool) -> None:
    """Raise LeftOutError for a text that a format does not accept, and for a URL that is no web address."""
    if fact.about.kind == "url" and not ADDRESS.fullmatch(fact.object):
        raise LeftOutError("no web address")
    if not is_accepted:
        raise LeftOutError("a text that the format does not accept")


def plain(text: str) -> str:
    """Return a text in the form that Wikidata accepts: single spaces, printable characters only."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def lines(entities: Iterator[Json]) -> Iterator[str]:
    """Yield the lines of a JSON array."""
    before = "[\n"
    for item in entities:
        yield before + json.dumps(item, ensure_ascii=False, separators=(",", ":"))
        before = ",\n"
    yield "\n]\n" if before == ",\n" else "[\n]\n"


def signed(digits: str) -> str:
    """Return a number with its sign, as Wikidata writes it."""
    return digits if digits.startswith("-") else f"+{digits}"


_NUMBER = re.compile(r"([+-]?\d[\d.,]*)(?:U([1-9]\d*))?\s*")


def quantity(fact: FactRow) -> tuple[str, str | None] | None:
    """Return a fact's number in the unit of its relation's item, and this item; None if its objects are no numbers.

    LeftOutError for a number that cannot be read. InputError if the relation's unit and the item of its unit have
    different dimensions.
    """
    if fact.about.kind != "number":
        return None
    if fact.literal is None:
        raise LeftOutError("no readable number")
    unit, item = unit_of(fact.about.unit), fact.about.unit_id
    if unit is None or (into := unit_of_item(item)) is None:
        return fact.literal, item or item_of_unit(unit)
    made = converted(Decimal(fact.literal), unit, into)
    if made is None:
        raise InputError(
            f"relation {fact.relation}: its unit {fact.about.unit!r} cannot be converted into its unit_id {item}; "
            "correct one of them in the relation, and build again"
        )
    return str(decimal(f"{made:f}")), item


def has_unit(about: About) -> bool:
    """Return whether a relation's numbers have a unit that can be converted."""
    return unit_of(about.unit) is not None


def known_number(value: str, item: str | None, about: About) -> tuple[str | None, bool]:
    """Return a known number in the unit of a relation's facts, and whether it came with a unit.

    value: a number, perhaps with a unit: "100", "10000U35852", "10,000 ha". item: Wikidata's item of the unit. Without
    a unit, a number is taken to have that of the facts. It is None if its unit is not known or has another dimension.
    An item that is no unit of measure, such as "seat", counts things.
    """
    match = _NUMBER.match(value)
    digits = decimal(match[1]) if match else None
    if match is None or digits is None:
        return None, False
    wanted, unit = unit_of(about.unit), unit_of_item(item or (match[2] and f"Q{match[2]}"))
    if match.end() < len(value):
        spelt = unit_at(value, match.end())
        unit = spelt.units[0] if spelt and spelt.end == len(value) else None
    elif not (item or match[2]) or (wanted is None and unit is None):
        return digits, False
    made = converted(Decimal(digits), unit, wanted) if unit and wanted else None
    return None if made is None else decimal(f"{made:f}"), True
