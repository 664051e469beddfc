"""The client of every server: the body of a response is read whole, and bounded while it is unpacked.

A response of 5 kB can unpack to gigabytes, most of all where one encoding lies in another (a "bomb"). So a body with
more than one encoding is refused, and a longer one than the bound is broken off. No redirect is followed.
"""

from __future__ import annotations

from typing import Any

import httpx2

from lmkbc.http import connection

MOST_BODY = 1 << 25
"""Largest body in bytes, unpacked: four times the longest reply of Wikidata's API, and many times a model's."""
_LENGTHS = frozenset({b"content-encoding", b"content-length", b"transfer-encoding"})
"""Fields of a response that describe the packed body."""


class RefusedBodyError(httpx2.DecodingError):
    """A body that is too long or has several encodings: the server would send it again."""


class WebClient(httpx2.AsyncClient):
    """A client for an address. settings: as of httpx2. A body that is not read whole is a RefusedBodyError."""

    def __init__(self, url: str, **settings: Any) -> None:
        super().__init__(**connection(url), follow_redirects=False, **settings)

    async def send(self, request: httpx2.Request, **how: Any) -> httpx2.Response:
        """Send a request, and return its response with the whole body, unpacked."""
        response = await super().send(request, **{**how, "stream": True})
        try:
            body = await _body(response)
        finally:
            await response.aclose()
        headers = [(name, value) for name, value in response.headers.raw if name.lower() not in _LENGTHS]
        return httpx2.Response(response.status_code, headers=headers, content=body, request=request)


async def _body(response: httpx2.Response) -> bytes:
    """Return the unpacked body of a response."""
    fields = response.headers.get_list("content-encoding", split_commas=True)
    if sum(encoding.strip().lower() not in ("", "identity") for encoding in fields) > 1:
        raise RefusedBodyError("its body is packed more than once, as no honest server does")
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > MOST_BODY:
            raise RefusedBodyError(f"its body is longer than {MOST_BODY >> 20} MiB")
    return bytes(body)
