"""A stand-in for Wikidata's API on loopback: answers from a small world, injects faults, counts what it is asked.

A fault is named in one of the tables below: a status, a body in place of the answer's, or a way of sending it.
"""

from __future__ import annotations

import gzip
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Fault = Callable[[int, Mapping[str, str]], str | None]
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
WAYS = (
    "maxlag",
    "silence",
    "cut short",
    "cut JSON",
    "hang up",
    "cut gzip",
    "no gzip",
    "unasked encoding",
    "no HTTP",
    "no chunks",
    "endless headers",
    "endless body",
    "gzip bomb",
    "endless gzip",
    "byte by byte",
)
SLOW = ("silence", "byte by byte")
"""Faults that only a clock ends."""
FAULTS = (*STATUSES, *SHAPES, *WAYS)


@cache
def bomb() -> bytes:
    """40 MiB of zeros, packed."""
    return gzip.compress(bytes(40 << 20))


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


class StandIn:
    """The server and what it saw. world: text -> ids. items: id -> entity. merged: old id -> the id it is now."""

    def __init__(
        self,
        world: Mapping[str, Sequence[str]],
        items: Mapping[str, Any] | None = None,
        merged: Mapping[str, str] | None = None,
        fault: Fault = lambda number, params: None,
        delay: float = 0.0,
    ) -> None:
        self.world = {text.casefold(): list(ids) for text, ids in world.items()}
        self.items, self.merged, self.fault, self.delay = dict(items or {}), dict(merged or {}), fault, delay
        self.searched: Counter[str] = Counter()
        self.groups: list[list[str]] = []
        self.agents: set[str] = set()
        self.encodings: set[str] = set()
        self.requests = self.in_flight = self.most_in_flight = 0
        self.faults: Counter[str] = Counter()
        self.dripped = 0
        self.stopped = threading.Event()
        self.lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"stand_in": self})
        self.server = _Server(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/w/api.php"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> StandIn:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

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


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent about a client that hung up."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    stand_in: StandIn
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Stay silent."""

    def do_GET(self) -> None:
        stand_in = self.stand_in
        params = {
            name: values[0] for name, values in parse_qs(urlsplit(self.path).query, keep_blank_values=True).items()
        }
        with stand_in.lock:
            stand_in.requests += 1
            number = stand_in.requests
            stand_in.in_flight += 1
            stand_in.most_in_flight = max(stand_in.most_in_flight, stand_in.in_flight)
            stand_in.agents.add(self.headers.get("User-Agent", ""))
            stand_in.encodings.add(self.headers.get("Accept-Encoding", ""))
        try:
            time.sleep(stand_in.delay)
            fault = stand_in.fault(number, params)
            if fault is None:
                self._count(params)
                self._send(200, json.dumps(stand_in.answer(params)).encode())
            else:
                stand_in.faults[fault] += 1
                self._fail(fault, json.dumps(stand_in.answer(params)).encode())
        finally:
            with stand_in.lock:
                stand_in.in_flight -= 1

    def _count(self, params: Mapping[str, str]) -> None:
        with self.stand_in.lock:
            if "search" in params:
                self.stand_in.searched[params["search"].casefold()] += 1
            else:
                self.stand_in.groups.append(params["ids"].split("|"))

    def _send(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        body = gzip.compress(body, 1)
        self.send_response(status)
        for name, value in {"Content-Encoding": "gzip", "Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(ConnectionError):
            self.wfile.write(body)

    def _fail(self, fault: str, body: bytes) -> None:
        if fault in STATUSES | REFUSALS:
            headers = {"429": {"Retry-After": "0"}, "302": {"Location": "/elsewhere"}}.get(fault, {})
            self._send((STATUSES | REFUSALS)[fault], b"{}", headers)
        elif fault in SHAPES:
            self._send(200, SHAPES[fault])
        elif fault == "an endless wish":
            self._send(503, b"{}", {"Retry-After": str(10**9)})
        elif fault == "maxlag":
            error = {"error": {"code": "maxlag", "info": "Waiting for db1: 7 seconds lagged", "lag": 7}}
            self._send(200, json.dumps(error).encode(), {"Retry-After": "0.05"})
        elif fault == "cut JSON":
            self._send(200, body[: len(body) // 2])
        else:
            self.close_connection = True
            with suppress(ConnectionError):
                self._misbehave(fault, body)

    def _misbehave(self, fault: str, body: bytes) -> None:
        """A fault of the connection, after which it is closed."""
        packed = {"Content-Encoding": "gzip"}
        if fault == "silence":
            self.stand_in.stopped.wait(20)
        elif fault == "cut short":
            self._send(200, body, {"Content-Length": str(len(body) + 1000)})
        elif fault == "cut gzip":
            self._head(packed)
            self.wfile.write(gzip.compress(body)[:-9])
        elif fault == "no gzip":
            self._head(packed)
            self.wfile.write(body)
        elif fault == "unasked encoding":
            self._head({"Content-Encoding": "br\x1b[31m"})
            self.wfile.write(body)
        elif fault == "no HTTP":
            self.wfile.write(body)
        elif fault == "no chunks":
            self._head({"Transfer-Encoding": "chunked"})
            self.wfile.write(b"zz\r\n" + body)
        elif fault == "endless headers":
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            self._drip(b"X: " + b"y" * 1000 + b"\r\n")
        elif fault == "endless body":
            self._head({})
            self._drip(b'{"search":[' + b" " * 65_000)
        elif fault == "gzip bomb":
            self._head(packed)
            self.wfile.write(bomb())
        elif fault == "endless gzip":
            self._head(packed)
            self.wfile.write(gzip.compress(body))
            self._drip(bytes(65_000))
        elif fault == "byte by byte":
            self._head({"Content-Length": str(len(body))})
            self._drip(b" ", pause=0.2)

    def _head(self, headers: Mapping[str, str]) -> None:
        self.send_response(200)
        for name, value in {"Connection": "close", **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def _drip(self, piece: bytes, pause: float = 0.0) -> None:
        """Send without end, until the other side hangs up or the server stops."""
        while not self.stand_in.stopped.wait(pause):
            self.wfile.write(piece)
            self.stand_in.dripped += len(piece)
