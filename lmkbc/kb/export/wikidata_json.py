"""Facts as Wikidata's JSON: an array with one entity per line, as in its dumps.

An object without an item becomes a statement of an unknown value, with the qualifier "object named as". A subject
without an item becomes a new entity without an id. No statement has a reference: a model is no source, and "based on
heuristic" (P887) would look like one. A name that Wikidata does not accept is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from lmkbc.kb.build.knowledge import FactRow
from lmkbc.kb.export.dates import CIRCA, NATURE, date_of, time_value
from lmkbc.kb.export.quantities import quantity

ENTITY = "http://www.wikidata.org/entity/"
TEXTS = {"string": "string", "url": "url", "identifier": "external-id"}
"""Kind of texts -> datatype of Wikidata's properties."""
NAMED_AS = "P1932"
"""Wikidata's property "object named as"."""
LANGUAGE = "mul"
"""Language code of a name that is the same in all languages."""
Json = dict[str, Any]


def entity(facts: Sequence[FactRow]) -> Json | None:
    """Return the entity of one subject's facts; None if none of them can be written."""
    claims: dict[str, list[Json]] = {}
    for fact in facts:
        if (statement := _statement(fact)) is not None:
            claims.setdefault(fact.about.property, []).append(statement)
    if not claims:
        return None
    first = facts[0]
    if first.subject_id is not None:
        return {"type": "item", "id": first.subject_id, "claims": claims}
    label = {"language": LANGUAGE, "value": plain(first.subject)}
    return {"type": "item", "labels": {LANGUAGE: label}, "claims": claims} if label["value"] else None


def _statement(fact: FactRow) -> Json | None:
    about, more, datatype, name = fact.about, Json(), "wikibase-item", plain(fact.object)
    value: Json | None = None
    if about.kind in TEXTS:
        if not name:
            return None
        datatype, value = TEXTS[about.kind], {"type": "string", "value": name}
    elif about.kind == "date":
        if (date := date_of(fact)) is None:
            return None
        datatype, value = "time", {"type": "time", "value": time_value(date)}
        more = _qualified(NATURE, "wikibase-item", _item(CIRCA)) if date.circa else more
    elif about.kind == "number":
        if (number := quantity(fact)) is None:
            return None
        unit = f"{ENTITY}{number[1]}" if number[1] else "1"
        datatype, value = "quantity", {"type": "quantity", "value": {"amount": signed(number[0]), "unit": unit}}
    elif fact.object_id is not None:
        value = _item(fact.object_id)
    elif name:
        more = _qualified(NAMED_AS, "string", {"type": "string", "value": name})
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


def plain(text: str) -> str:
    """Return a text in the form that Wikidata accepts: single spaces, printable characters only."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def lines(entities: Iterator[Json]) -> Iterator[str]:
    """Yield the lines of a JSON array."""
    before = "[\n"
    for one in entities:
        yield before + json.dumps(one, ensure_ascii=False, separators=(",", ":"))
        before = ",\n"
    yield "\n]\n" if before == ",\n" else "[\n]\n"


def signed(digits: str) -> str:
    """Return a number with its sign, as Wikidata writes it."""
    return digits if digits.startswith("-") else f"+{digits}"
