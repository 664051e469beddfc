"""A stand-in for Wikidata on loopback: its API, and its query service over the same entities as RDF, by pyoxigraph.

Entities are in Wikibase's JSON. `triples` writes them as Wikidata does, so that a wrong query finds nothing:
https://www.mediawiki.org/wiki/Wikibase/Indexing/RDF_Dump_Format.
"""

import gzip
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from loopback import OK, Fault, Request, Sent, Server, response, status
from pyoxigraph import Literal, NamedNode, Quad, QueryResultsFormat, Store

WIKIDATA, WIKIBASE = "http://www.wikidata.org/", "http://wikiba.se/ontology#"
RDF, RDFS = "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "http://www.w3.org/2000/01/rdf-schema#"
SKOS, SCHEMA, XSD = "http://www.w3.org/2004/02/skos/core#", "http://schema.org/", "http://www.w3.org/2001/XMLSchema#"
GREGORIAN, JULIAN = "Q1985727", "Q1985786"
Json = dict[str, Any]


class NoValue:
    """The value "no value"."""


class Unknown:
    """The value "unknown value"."""


class Amount(NamedTuple):
    """A quantity with the item of its unit."""

    amount: str
    unit: str = "1"


class Day(NamedTuple):
    """A date as RDF has it, with its precision and calendar."""

    time: str
    precision: int
    calendar: str = GREGORIAN


class Ranked(NamedTuple):
    """A value with its rank."""

    value: Any
    rank: str


FAULTS: Mapping[str, Fault] = {
    "429": status(429, "Retry-After: 0"),
    "503": status(503, "Retry-After: 0"),
    "time-out": status(500, text="java.util.concurrent.TimeoutException"),
    "cut short": lambda body: response(body, length=len(body) + 1000, end="close"),
    "cut JSON": lambda body: response(body[: len(body) // 2]),
    "half the rows": lambda body: response(_halved(json.loads(body))),
    "two layers": lambda body: response(gzip.compress(gzip.compress(body)), OK, "Content-Encoding: gzip, gzip"),
    "silence": lambda _: Sent(b"", "hang"),
    "400": status(400),
}


def _halved(answer: Json) -> Json:
    rows = answer["results"]["bindings"]
    return {**answer, "results": {"bindings": rows[: len(rows) // 2]}}


def _terms(texts: Mapping[str, str]) -> Json:
    return {language: {"language": language, "value": text} for language, text in texts.items()}


def snak(name: str, value: Any) -> Json:
    """Return a snak for a QID, a PID, a text, an amount, a date, NoValue or Unknown."""
    if isinstance(value, type):
        return {"snaktype": "novalue" if value is NoValue else "somevalue", "property": name}
    kind: tuple[str, Any] = ("string", value)
    if isinstance(value, Amount):
        unit = value.unit if value.unit == "1" else f"{WIKIDATA}entity/{value.unit}"
        kind = ("quantity", {"amount": value.amount, "unit": unit})
    elif isinstance(value, Day):
        kind = ("time", {"time": _year(value.time, -1), "precision": value.precision, "calendarmodel": value.calendar})
    elif value[:1] in "QP" and value[1:].isdecimal():
        kind = ("wikibase-entityid", {"id": value})
    return {"snaktype": "value", "property": name, "datavalue": {"type": kind[0], "value": kind[1]}}


def _year(time: str, step: int) -> str:
    """Return a time of RDF as JSON has it (step -1), or the reverse: JSON signs each year, and has no year 0."""
    if time[0] != "-":
        return f"+{time}" if step < 0 else time.lstrip("+")
    year, rest = time[1:5], time[5:]
    return f"-{int(year) - step:04}{rest}"


def claim(name: str, value: Any, **qualifiers: Sequence[Any]) -> Json:
    """Return a statement; its rank is normal unless the value is Ranked."""
    plain, rank = value if isinstance(value, Ranked) else (value, "normal")
    listed = {qualifier: [snak(qualifier, each) for each in values] for qualifier, values in qualifiers.items()}
    return {"mainsnak": snak(name, plain), "rank": rank, "qualifiers": listed}


def item(
    qid: str,
    label: str = "",
    claims: Mapping[str, Sequence[Any]] | None = None,
    *,
    aliases: Sequence[str] = (),
    links: int = 0,
    **labels: str,
) -> Json:
    """Return an item. labels: in other languages. links: number of sitelinks."""
    return {
        "type": "item",
        "id": qid,
        "labels": _terms(({"en": label} if label else {}) | labels),
        "descriptions": {},
        "aliases": {"en": [{"language": "en", "value": alias} for alias in aliases]} if aliases else [],
        "claims": {name: [claim(name, value) for value in values] for name, values in (claims or {}).items()},
        "sitelinks": {f"site{number}wiki": {"title": label or qid} for number in range(links)},
    }


def prop(
    pid: str, label: str, datatype: str = "wikibase-item", constraints: Sequence[Json] = (), description: str = ""
) -> Json:
    """Return a property."""
    return {
        "type": "property",
        "datatype": datatype,
        "id": pid,
        "labels": _terms({"en": label} if label else {}),
        "descriptions": _terms({"en": description} if description else {}),
        "aliases": {},
        "claims": {"P2302": list(constraints)},
    }


def triples(entity: Json) -> Iterator[tuple[NamedNode, NamedNode, NamedNode | Literal]]:
    """Yield an item as RDF, in Wikidata's own layout."""
    node = NamedNode(f"{WIKIDATA}entity/{entity['id']}")
    for language, term in entity["labels"].items():
        yield node, NamedNode(f"{RDFS}label"), Literal(term["value"], language=language)
    for language, terms in (entity["aliases"] or {}).items():
        for term in terms:
            yield node, NamedNode(f"{SKOS}altLabel"), Literal(term["value"], language=language)
    yield node, NamedNode(f"{WIKIBASE}sitelinks"), Literal(len(entity.get("sitelinks", ())))
    for site in entity.get("sitelinks", ()):
        yield NamedNode(f"https://{site}.example/{entity['id']}"), NamedNode(f"{SCHEMA}about"), node
    for name, claims in entity["claims"].items():
        ranks = [each["rank"] for each in claims]
        best = "preferred" if "preferred" in ranks else "normal"
        for number, each in enumerate(claims):
            yield from _statement(node, name, f"{entity['id']}-{name}-{number}", each, each["rank"] == best)


def _statement(
    node: NamedNode, name: str, key: str, statement: Json, best: bool
) -> Iterator[tuple[NamedNode, NamedNode, NamedNode | Literal]]:
    made, main, kind = NamedNode(f"{WIKIDATA}entity/statement/{key}"), statement["mainsnak"], NamedNode(f"{RDF}type")
    yield node, NamedNode(f"{WIKIDATA}prop/{name}"), made
    yield made, kind, NamedNode(f"{WIKIBASE}Statement")
    if best:
        yield made, kind, NamedNode(f"{WIKIBASE}BestRank")
    if main["snaktype"] == "novalue":
        for each in [made, *([node] if best else [])]:
            yield each, kind, NamedNode(f"{WIKIDATA}prop/novalue/{name}")
        return
    value = _value(main["datavalue"]) if "datavalue" in main else NamedNode(f"{WIKIDATA}.well-known/genid/{key}")
    yield made, NamedNode(f"{WIKIDATA}prop/statement/{name}"), value
    if best:
        yield node, NamedNode(f"{WIKIDATA}prop/direct/{name}"), value
    content = main.get("datavalue", {}).get("value")
    if not isinstance(content, dict) or "id" in content:
        return
    whole = NamedNode(f"{WIKIDATA}value/{key}")
    yield made, NamedNode(f"{WIKIDATA}prop/statement/value/{name}"), whole
    if "amount" in content:
        unit = content["unit"] if content["unit"] != "1" else f"{WIKIDATA}entity/Q199"
        yield whole, NamedNode(f"{WIKIBASE}quantityAmount"), value
        yield whole, NamedNode(f"{WIKIBASE}quantityUnit"), NamedNode(unit)
    else:
        calendar = NamedNode(f"{WIKIDATA}entity/{content['calendarmodel']}")
        yield whole, NamedNode(f"{WIKIBASE}timeValue"), value
        yield whole, NamedNode(f"{WIKIBASE}timePrecision"), Literal(content["precision"])
        yield whole, NamedNode(f"{WIKIBASE}timeCalendarModel"), calendar


def _value(datavalue: Json) -> NamedNode | Literal:
    value = datavalue["value"]
    if datavalue["type"] == "quantity":
        return Literal(value["amount"], datatype=NamedNode(f"{XSD}decimal"))
    if datavalue["type"] == "time":
        return Literal(_year(value["time"], 1), datatype=NamedNode(f"{XSD}dateTime"))
    return Literal(value) if datavalue["type"] == "string" else NamedNode(f"{WIKIDATA}entity/{value['id']}")


class WikidataServer(Server):
    """The server. merged: old id -> the id it is now. fault: number and parameters of a request -> name of a fault."""

    def __init__(
        self,
        entities: Sequence[Json],
        merged: Mapping[str, str] | None = None,
        fault: Callable[[int, Mapping[str, str]], str | None] = lambda number, params: None,
        delay: float = 0.0,
    ) -> None:
        super().__init__(delay=delay)
        self.entities, self.merged, self.fault = {each["id"]: each for each in entities}, dict(merged or {}), fault
        self.store = Store()
        self.store.extend(Quad(*triple) for each in entities if each["type"] == "item" for triple in triples(each))
        self.queries: list[str] = []

    @property
    def api(self) -> str:
        return f"{self.url}/w/api.php"

    @property
    def sparql(self) -> str:
        return f"{self.url}/sparql"

    def respond(self, request: Request) -> Sent:
        address = urlsplit(request.path)
        params = {name: values[0] for name, values in parse_qs(address.query, keep_blank_values=True).items()}
        good = self._query(params["query"]) if address.path == "/sparql" else json.dumps(self._api(params)).encode()
        fault = self.fault(request.number, params)
        return FAULTS[fault](good) if fault else response(good, OK)

    def _query(self, text: str) -> bytes:
        self.queries.append(text)
        return self.store.query(text).serialize(format=QueryResultsFormat.JSON)

    def _api(self, params: Mapping[str, str]) -> Json:
        if params["action"] == "wbsearchentities":
            text = params["search"].casefold()
            labels = {qid: each["labels"].get("en", {}).get("value", "") for qid, each in self.entities.items()}
            hits = [{"id": qid, "label": label} for qid, label in labels.items() if label.casefold() == text]
            return {"search": [hit for hit in hits if hit["id"].startswith("Q")], "success": 1}
        wanted = params["ids"].split("|")
        for each in wanted:
            if int(each[1:]) > 2**31 - 1:
                return {"error": {"code": "no-such-entity", "info": f"Could not find an entity with the ID {each!r}."}}
        return {"entities": {each: self._entity(each) for each in wanted}, "success": 1}

    def _entity(self, wanted: str) -> Json:
        now = self.merged.get(wanted, wanted)
        if now not in self.entities:
            return {"id": wanted, "missing": ""}
        return {**self.entities[now], **({"redirects": {"from": wanted, "to": now}} if now != wanted else {})}
