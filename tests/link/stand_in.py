"""A stand-in for Wikidata's API on loopback: answers from a small world, injects faults, counts what it is asked.

A fault is named in one of the tables below: a status, a body in place of the answer's, or a way of sending it.
"""

import gzip
import itertools
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit

from loopback import OK, Fault, Request, Sent, Server, response, unbounded

GZIP = "Content-Encoding: gzip"
STATUSES = {"429": 429, "500": 500, "502": 502, "503": 503, "504": 504}
REFUSALS = {"302": 302, "403": 403, "404": 404, "421": 421}
HIT = '{"search":[{"id":%s}],"entities":{"Q1":{"id":%s}}}'
SHAPES = {
    "a list": b"[]",
    "an empty object": b"{}",
    "null": b"null",
    "a number": b"5",
    "nothing": b"",
    "HTML": b"<!DOCTYPE html><p>Please log in",
    "an error that is a text": b'{"error":"x"}',
    "an error without a code": b'{"error":{}}',
    "an error of another code": b'{"error":{"code":5,"info":[]}}',
    "no hits but null": b'{"search":null,"entities":null}',
    "hits that are an object": b'{"search":{"id":"Q1"},"entities":[{"id":"Q1"}]}',
    "a hit that is null": b'{"search":[null],"entities":{"Q1":null}}',
    "a hit without an id": b'{"search":[{"label":"x"}],"entities":{"Q1":{"labels":{}}}}',
    "an id that is a number": (HIT % (5, 5)).encode(),
    "two ids in one": (HIT % ('"Q1|Q2"', '"Q1|Q2"')).encode(),
    "an id that is a path": (HIT % ('"../../x"', '"../../x"')).encode(),
    "an id and a line": (HIT % ('"Q1\\n"', '"Q1\\n"')).encode(),
    "an id of no item": (HIT % ('"Q0"', '"P31"')).encode(),
    "an id without end": (HIT % (f'"Q{"1" * 10**6}"', f'"Q{"1" * 10**6}"')).encode(),
    "an id twice": b'{"search":[{"id":"Q1","id":5}],"entities":{"Q1":{"id":"Q1","id":5}}}',
    "a book for a label": json.dumps(
        {
            "search": [{"id": "Q1", "label": "x" * 10**6}],
            "entities": {"Q1000": {"id": "Q1000", "labels": {"en": {"value": "x" * 10**6}}}},
        }
    ).encode(),
    "a class that is a path": (
        b'{"search":7,"entities":{"Q1000":{"id":"Q1000","claims":'
        b'{"P31":[{"mainsnak":{"datavalue":{"value":{"id":"../x"}}}}]}}}}'
    ),
    "entities of other ids": b'{"search":"","entities":{"Q7":{"id":"Q7"}}}',
    "an entity under another key": b'{"search":0,"entities":{"Q1000":{"id":"Q7"}}}',
    "deep nesting": b'{"search":' + b"[" * 10**5 + b"]" * 10**5 + b',"entities":[]}',
    "deep nesting beside it": b'{"search":[],"entities":{},"x":' + b'{"x":' * 10**5 + b"1" + b"}" * 10**5 + b"}",
    "bytes that are no text": b'{"search":[{"id":"Q1","label":"\xff\xfe"}],"entities":{"\xff":{"id":"Q1"}}}',
    "half an emoji": b'{"search":[{"id":"Q1","label":"\\ud83d"}],"entities":{"Q1":{"id":"\\ud83d"}}}',
    "more hits than asked for": b'{"entities":[],"search":[' + b",".join([b'{"id":"Q1"}'] * 10**4) + b"]}",
}


def packed(body: bytes, status: str | int = OK, *fields: str, **how: Any) -> Sent:
    """Return a response as Wikidata sends it, compressed."""
    return response(gzip.compress(body, 1), status, GZIP, *fields, **how)


LAG = b'{"error": {"code": "maxlag", "info": "Waiting for db1: 7 seconds lagged", "lag": 7}}'
WAYS: dict[str, Fault] = {
    "maxlag": lambda _: packed(LAG, OK, "Retry-After: 0.05"),
    "silence": lambda _: Sent(b"", "hang"),
    "cut short": lambda body: response(body, length=len(body) + 1000, end="close"),
    "cut JSON": lambda body: packed(body[: len(body) // 2]),
    "hang up": lambda _: Sent(b"", "close"),
    "no gzip": lambda body: unbounded(GZIP, raw=body),
    "no HTTP": lambda body: Sent(body, "close"),
    "no chunks": lambda body: unbounded("Transfer-Encoding: chunked", raw=b"zz\r\n" + body),
    "endless headers": lambda _: Sent(b"HTTP/1.1 200 OK\r\n", pieces=itertools.repeat(b"X: " + b"y" * 1000 + b"\r\n")),
    "byte by byte": lambda body: response(b"", length=len(body), pieces=itertools.repeat(b" "), pause=0.2),
}
SLOW = ("silence", "byte by byte")
"""Faults that only a clock ends."""
FAULTS = (*STATUSES, *SHAPES, *WAYS)
HEADERS = {"429": "Retry-After: 0", "302": "Location: /elsewhere", "an endless wish": "Retry-After: 1000000000"}


def fault_of(name: str) -> Fault:
    """Return the fault of a name."""
    if name in WAYS:
        return WAYS[name]
    if name in SHAPES:
        return lambda _: packed(SHAPES[name])
    fields = [HEADERS[name]] if name in HEADERS else []
    return lambda _: packed(b"{}", (STATUSES | REFUSALS | {"an endless wish": 503})[name], *fields)


def item(
    qid: str, label: str, classes: Sequence[str] = (), above: Sequence[str] = (), links: int = 0
) -> dict[str, Any]:
    """An entity as wbgetentities writes it."""

    def statements(prop: str, values: Sequence[str]) -> list[dict[str, Any]]:
        snak = {"snaktype": "value", "property": prop}
        return [
            {"mainsnak": {**snak, "datavalue": {"type": "wikibase-entityid", "value": {"id": value}}}, "rank": "normal"}
            for value in values
        ]

    return {
        "type": "item",
        "id": qid,
        "labels": {"en": {"language": "en", "value": label}},
        "descriptions": {"en": {"language": "en", "value": f"about {label}"}},
        "claims": {"P31": statements("P31", classes), "P279": statements("P279", above)},
        "sitelinks": {f"wiki{i}": {} for i in range(links)},
    }


class StandIn(Server):
    """The server and what it saw. world: text -> ids. items: id -> entity. merged: old id -> the id it is now.

    fault: the number of a request and its parameters -> the name of a fault.
    """

    def __init__(
        self,
        world: Mapping[str, Sequence[str]],
        items: Mapping[str, Any] | None = None,
        merged: Mapping[str, str] | None = None,
        fault: Callable[[int, Mapping[str, str]], str | None] = lambda number, params: None,
        delay: float = 0.0,
    ) -> None:
        super().__init__(delay=delay)
        self.world = {text.casefold(): list(ids) for text, ids in world.items()}
        self.items, self.merged, self.fault = dict(items or {}), dict(merged or {}), fault
        self.searched: Counter[str] = Counter()
        self.groups: list[list[str]] = []
        self.faults: Counter[str] = Counter()

    @property
    def url(self) -> str:
        return f"{super().url}/w/api.php"

    def respond(self, request: Request) -> Sent:
        given = parse_qs(urlsplit(request.path).query, keep_blank_values=True)
        params = {name: values[0] for name, values in given.items()}
        fault, good = self.fault(request.number, params), json.dumps(self.answer(params)).encode()
        if fault is not None:
            self.faults[fault] += 1
            return fault_of(fault)(good)
        if "search" in params:
            self.searched[params["search"].casefold()] += 1
        else:
            self.groups.append(params["ids"].split("|"))
        return packed(good)

    def answer(self, params: Mapping[str, str]) -> dict[str, Any]:
        if params["action"] == "wbsearchentities":
            ids = self.world.get(params["search"].casefold(), [])
            return {"search": [self._hit(qid, params["search"]) for qid in ids], "success": 1}
        wanted = params["ids"].split("|")
        for qid in wanted:
            if int(qid[1:]) > 10**9:
                return {"error": {"code": "no-such-entity", "info": f"Could not find an entity {qid}", "id": qid}}
        return {"entities": {qid: self._entity(qid) for qid in wanted}, "success": 1}

    def _hit(self, qid: str, text: str) -> dict[str, Any]:
        label = self.items.get(qid, {}).get("labels", {}).get("en", {}).get("value", text)
        return {"id": qid, "label": label, "match": {"type": "label", "language": "en", "text": text}}

    def _entity(self, qid: str) -> dict[str, Any]:
        now = self.merged.get(qid, qid)
        if now not in self.items:
            return {"id": qid, "missing": ""}
        entity = dict(self.items[now])
        return entity if now == qid else {**entity, "redirects": {"from": qid, "to": now}}
