"""The HTTP client under the SDK: no response is larger than its cap, and none is fetched from where we were not sent.

Redirects are not followed, not even on the same host: answers are kept under the address that was asked, a POST that is
redirected may lose its body, and a person can name the right address once.
"""

from __future__ import annotations

from typing import Any

import httpx2
import openai

MOST_BYTES = 16 * 2**20
"""Of one response, decompressed: a hundred times the longest answer with the log-probabilities of its tokens."""


class TooLargeError(Exception):
    """A response that goes on beyond its cap."""

    def __init__(self, most: int) -> None:
        super().__init__(f"its response is larger than {most / 2**20:g} MiB")


class BoundedClient(openai.DefaultAsyncHttpxClient):
    """Reads whole responses, up to MOST_BYTES. Good ones that the caller streams are left for `bounded` to read."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(follow_redirects=False, **settings)

    async def send(self, request: httpx2.Request, *, stream: bool = False, **how: Any) -> httpx2.Response:
        """The response, read. TooLargeError beyond the cap."""
        response = await super().send(request, stream=True, **how)
        if stream and response.is_success:
            return response
        content = await bounded(response, MOST_BYTES)
        names = ("content-encoding", "content-length", "transfer-encoding")  # of what was sent, no more of what is here
        headers = [(name, value) for name, value in response.headers.multi_items() if name not in names]
        return httpx2.Response(response.status_code, headers=headers, content=content, request=request)


async def bounded(response: httpx2.Response, most: int) -> bytes:
    """The body of a response, decompressed piece by piece. TooLargeError beyond so many bytes."""
    content = bytearray()
    try:
        async for chunk in response.aiter_bytes():
            content += chunk
            if len(content) > most:
                raise TooLargeError(most)
    finally:
        await response.aclose()
    return bytes(content)
