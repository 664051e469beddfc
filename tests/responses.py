"""What a server sends, as data: a good answer, or what comes in its place and how the connection ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

Body = dict[str, Any]
OK = "200 OK"


@dataclass(frozen=True)
class Sent:
    """raw: sent at once. pieces: sent after it, one each `pause` seconds, until the client hangs up.

    end: what becomes of the connection: "keep", "close", "reset", or "hang" until the client hangs up.
    """

    raw: bytes
    end: str = "keep"
    pieces: Iterable[bytes] = ()
    pause: float = 0.0


Fault = Callable[[bytes], Sent]
"""The good answer's body -> what is sent in its place."""


def response(body: bytes | Body, status: str | int = OK, *fields: str, length: int | None = None, **how: Any) -> Sent:
    """Return a response with these header fields beside its length. how: fields of Sent."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    told = ["Content-Type: application/json", f"Content-Length: {len(raw) if length is None else length}", *fields]
    first = f"{status} {HTTPStatus(status).phrase}" if isinstance(status, int) else status
    return Sent(f"HTTP/1.1 {first}\r\n".encode() + "\r\n".join(told).encode() + b"\r\n\r\n" + raw, **how)


def unbounded(*fields: str, raw: bytes = b"", status: str | int = OK, **how: Any) -> Sent:
    """Return a response without a length, which ends with the connection."""
    head = f"HTTP/1.1 {status}" + "".join(f"\r\n{field}" for field in ("Connection: close", *fields))
    return Sent(head.encode("latin-1") + b"\r\n\r\n" + raw, **{"end": "close", **how})


def status(code: int, *fields: str, text: str = "no") -> Fault:
    """Return a fault: a status and an error."""
    return lambda _: response({"error": {"message": text}}, code, *fields)


def whole(text: str | bytes, *fields: str, **how: Any) -> Fault:
    """Return a fault: the same body for every request."""
    return lambda _: response(text if isinstance(text, bytes) else text.encode(), OK, *fields, **how)


def edited(edit: Callable[[Body], Any]) -> Fault:
    """Return a fault: the good answer, edited in place."""

    def fault(good: bytes) -> Sent:
        answer = json.loads(good)
        edit(answer)
        return response(answer)

    return fault


def chunked(body: bytes, rest: bytes) -> Sent:
    """Return the first half of a body as a chunk, then `rest` as it is."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    return Sent(head + b"%x\r\n" % (len(body) // 2) + body[: len(body) // 2] + b"\r\n" + rest, "close")
