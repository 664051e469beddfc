"""Reading what a server sends in bounded memory: its body is unpacked piece by piece, and no further than a limit."""

from __future__ import annotations

import zlib

import httpx2

_GZIP = zlib.MAX_WBITS | 16
ACCEPTED = "gzip"
"""The one encoding that is unpacked, to be sent as Accept-Encoding."""


class BodyError(Exception):
    """A body that is too long, cut off, or packed in a way that was not asked for; its text says which."""


async def read_body(response: httpx2.Response, limit: int) -> bytes:
    """The unpacked body of a streamed response: at most `limit` bytes, as sent and as unpacked. Raises BodyError."""
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in {ACCEPTED, "identity", ""}:
        raise BodyError(f"a body in the encoding {encoding[:40]!r}, which was not asked for")
    unpack = zlib.decompressobj(_GZIP) if encoding == ACCEPTED else None
    body, sent = bytearray(), 0
    async for chunk in response.aiter_raw():
        sent += len(chunk)
        if unpack and unpack.eof:
            raise BodyError("a body that goes on after its end")
        try:
            body += unpack.decompress(chunk, limit - len(body) + 1) if unpack else chunk
        except zlib.error as error:
            raise BodyError(f"a body that cannot be unpacked ({error})") from None
        if max(sent, len(body)) > limit:
            raise BodyError(f"a body of more than {limit:,} bytes")
    if unpack and not unpack.eof:
        raise BodyError("a body that was cut off")
    return bytes(body)
