"""Facts as Wikidata writes them: numbers in its units, and JSON, an array with one entity per line, as in its dumps.

An object without an item becomes a statement of an unknown value, with the qualifier "object named as". A subject
without an item becomes a new entity without an id. A model is no source, and "based on heuristic" (P887) would look
like one. So a reference stands only where a person decided by a source. A name that Wikidata does not accept is left
out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from lmkbc.kb.base.fact_row import FactRow
from lmkbc.kb.base.knowledge import Knowledge
from lmkbc.kb.base.manifest import About
from lmkbc.kb.export.exporter import Exporter, ExportSettings
from lmkbc.kb.export.left_out import ExportTally, cited, exported
from lmkbc.kinds.kind import Exported, LeftOutError, accepted, kind_of

NAMED_AS = "P1932"
"""Wikidata's property "object named as"."""
LANGUAGE = "mul"
"""Language code of a name that is the same in all languages."""
RETRIEVED = About("P813", "date")
"""The day of a reference."""
Json = dict[str, Any]


def entity(facts: Sequence[FactRow], tally: ExportTally) -> Json | None:
    """Return the entity of one subject's facts; None if none of them can be written."""
    claims: dict[str, list[Json]] = {}
    for statement in tally.written(facts, _statement):
        claims.setdefault(statement["mainsnak"]["property"], []).append(statement)
    if not claims:
        return None
    subject = facts[0].subject_node
    if subject.id is not None:
        return {"type": "item", "id": subject.id, "claims": claims}
    label = {"language": LANGUAGE, "value": accepted(subject.name)}
    return {"type": "item", "labels": {LANGUAGE: label}, "claims": claims}


def _statement(fact: FactRow) -> Json:
    more, datatype, name = Json(), "wikibase-item", accepted(fact.object)
    value: Json | None = None
    check_property(fact)
    subject, thing = fact.subject_node, fact.object_node
    if subject.id is None and not accepted(subject.name):
        raise LeftOutError("no name that Wikidata accepts")
    if made := exported(fact):
        check(made, is_accepted=bool(name) or kind_of(fact.about).has_values)
        datatype, value = made.wikidata[0], dict(made.wikidata[1])
        if made.qualifier:
            more = _qualified(made.qualifier[0], "wikibase-item", _item(made.qualifier[1]))
    elif thing.id is not None:
        value = _item(thing.id)
    elif name:
        more = _qualified(NAMED_AS, "string", {"type": "string", "value": name})
    else:
        raise LeftOutError("no name that Wikidata accepts")
    mainsnak = _snak(fact.about.property, datatype, value)
    return {"mainsnak": mainsnak, "type": "statement", "rank": "normal", **more, **_references(fact)}


def _references(fact: FactRow) -> Json:
    """Return the fields of a statement with a reference; {} if no person decided by a source."""
    if (found := cited(fact)) is None:
        return {}
    name, source = found
    value, day = {"type": "string", "value": source}, exported(fact._replace(about=RETRIEVED, literal=fact.reviewed_on))
    snak = _snak(name, "wikibase-item", _item(source)) if name == "P248" else _snak(name, "url", value)
    snaks = {name: [snak], "P813": [_snak("P813", "time", day and dict(day.wikidata[1]))]}
    return {"references": [{"snaks": snaks, "snaks-order": [*snaks]}]}


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
        raise LeftOutError(f"relation {fact.relation} has no property of Wikidata")


def check(made: Exported, *, is_accepted: bool) -> None:
    """Raise LeftOutError for an object that has a fault, or that a format does not accept."""
    if made.fault or not is_accepted:
        raise LeftOutError(made.fault or "a text that the format does not accept")


def lines(entities: Iterator[Json]) -> Iterator[str]:
    """Yield the lines of a JSON array."""
    before = "[\n"
    for item in entities:
        yield before + json.dumps(item, ensure_ascii=False, separators=(",", ":"))
        before = ",\n"
    yield "\n]\n" if before == ",\n" else "[\n]\n"


def _entities(base: Knowledge, tally: ExportTally, _: ExportSettings) -> Iterator[str]:
    return lines(filter(None, (entity(facts, tally) for facts in base.by_subject())))


JSON_DUMP = Exporter(pieces=_entities, of_wikidata=True)
