"""A stand-in for Wikidata's API on loopback: answers from a small world, injects faults, counts what it is asked."""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Fault = Callable[[int, Mapping[str, str]], str | None]
FAULTS = ("maxlag", "429", "503", "slow", "cut short", "cut JSON", "hang up")


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
        self.lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"stand_in": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/w/api.php"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> StandIn:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
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
        body = gzip.compress(body)
        self.send_response(status)
        for name, value in {"Content-Encoding": "gzip", "Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _fail(self, fault: str, body: bytes) -> None:
        if fault == "maxlag":
            error = {"error": {"code": "maxlag", "info": "Waiting for db1: 7 seconds lagged", "lag": 7}}
            self._send(200, json.dumps(error).encode(), {"Retry-After": "0.05"})
        elif fault in ("429", "503", "403"):
            self._send(int(fault), b"{}", {"Retry-After": "0"} if fault == "429" else {})
        elif fault == "slow":
            time.sleep(3.0)
            self._send(200, body)
        elif fault == "cut JSON":
            self._send(200, body[: len(body) // 2])
        elif fault == "cut short":
            self._send(200, body, {"Content-Length": str(len(body) + 1000)})
            self.close_connection = True
        else:
            self.close_connection = True
