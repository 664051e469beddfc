"""HTTP: which addresses and certificates are good, how long and how often a server is asked, how much of it is read.

Model servers (under the openai SDK), Wikidata and downloads all go through here. No redirect is followed with a key.
"""

from __future__ import annotations

import asyncio
import math
import ssl
import zlib
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from lmkbc.errors import LmkbcError

if TYPE_CHECKING:
    import httpx2
    import tenacity

Item = TypeVar("Item")
Result = TypeVar("Result")

LONGEST_PAUSE = 60.0
"""Seconds between two attempts at most, unless the server asks for more."""

HEADERS = {"Accept-Encoding": "gzip"}
"""Gzip is the one encoding that is unpacked; `read_body` refuses others."""
_GZIP = zlib.MAX_WBITS | 16


class CallError(LmkbcError):
    """A request without an answer. transient: asking again may help; wait: seconds that the server asks for."""

    def __init__(self, reason: str, *, transient: bool = True, wait: float | None = None) -> None:
        super().__init__(reason)
        self.transient = transient
        self.wait = wait


class TooLargeError(CallError):
    """A body that goes on beyond its limit."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"its response is larger than {limit / 2**20:g} MiB", transient=False)


def is_web_address(url: str) -> bool:
    """Return whether a URL is of http or https, and names a host that can be looked up.

    It is not if a character cannot be seen, brackets or the port make no sense, or a part of the host is empty.
    """
    if not url.isprintable() or " " in url:
        return False
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna")
        return parts.scheme in ("http", "https") and bool(host) and parts.port != 0
    except ValueError:
        return False


@cache
def trusted() -> ssl.SSLContext:
    """Return the certificates that HTTPS trusts, read once in a process: that takes longer than many a request."""
    import httpx2

    return httpx2.create_ssl_context()


def retry_after(value: str | None) -> float | None:
    """Return the seconds that a Retry-After header names, as a number or a date (RFC 9110, section 10.2.3).

    None if it is absent or neither.
    """
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


async def read_body(response: httpx2.Response, limit: int) -> bytes:
    """Read and unpack a streamed response, and close it: at most `limit` bytes, as sent and as unpacked.

    Memory stays within the limit, since each piece is unpacked no further. TooLargeError beyond it;
    CallError for a body that was cut off, or is packed in a way that was not asked for.
    """
    try:
        encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
        if encoding not in ("gzip", "identity", ""):
            raise CallError(f"a body in the encoding {encoding[:40]!r}, which was not asked for")
        unpack = zlib.decompressobj(_GZIP) if encoding == "gzip" else None
        body, sent = bytearray(), 0
        async for chunk in response.aiter_raw():
            sent += len(chunk)
            if unpack and unpack.eof:
                raise CallError("a body that goes on after its end")
            try:
                body += unpack.decompress(chunk, limit - len(body) + 1) if unpack else chunk
            except zlib.error as error:
                raise CallError(f"a body that cannot be unpacked ({error})") from None
            if max(sent, len(body)) > limit:
                raise TooLargeError(limit)
        if unpack and not unpack.eof:
            raise CallError("a body that was cut off")
        return bytes(body)
    finally:
        await response.aclose()


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    """Limits on requests to a server, and on retries.

    requests_per_minute, tokens_per_minute: None for no limit. attempts: of one request, the first included.
    total_wait: seconds that its retries may take in all, a wait that the server asks for included. first_wait: seconds
    before the first retry, doubled before each next one.
    """

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    attempts: int = 6
    total_wait: float = 300.0
    first_wait: float = 1.0


class Pace:
    """When requests to a server may start; one object for all of them, spread evenly over the minutes."""

    def __init__(self, patience: RequestLimits) -> None:
        self._patience = patience
        self._request = 60 / patience.requests_per_minute if patience.requests_per_minute else 0.0
        self._token = 60 / patience.tokens_per_minute if patience.tokens_per_minute else 0.0
        self._next_request = self._next_token = self._held = 0.0

    async def enter(self, tokens: int = 0) -> None:
        """Wait until a request of about so many tokens may start."""
        now = asyncio.get_running_loop().time()
        start = max(now, self._next_request, self._next_token, self._held)
        self._next_request = max(now, self._next_request, start) + self._request
        self._next_token = max(now, self._next_token, start) + tokens * self._token
        if start > now:
            await asyncio.sleep(start - now)

    def correct(self, guessed: int, used: int) -> None:
        """Account for the tokens that a request really used."""
        self._next_token += (used - guessed) * self._token

    def hold(self, seconds: float) -> None:
        """Let no request start for so long."""
        self._held = max(self._held, asyncio.get_running_loop().time() + seconds)

    async def retrying(self, request: Callable[[], Awaitable[Result]]) -> Result:
        """Return what a request brings, made again after failures that pass; raise the last failure.

        A wait that the server asks for holds back all requests.
        """
        import tenacity

        growing = tenacity.wait_exponential(multiplier=self._patience.first_wait, max=LONGEST_PAUSE)
        jitter = tenacity.wait_random(0, self._patience.first_wait / 2)

        def wait(state: tenacity.RetryCallState) -> float:
            error = state.outcome.exception() if state.outcome else None
            asked = error.wait if isinstance(error, CallError) else None
            if asked is None:
                return growing(state) + jitter(state)
            if asked <= self._patience.total_wait:
                self.hold(asked)
            return asked + jitter(state)

        attempts = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception(lambda error: isinstance(error, CallError) and error.transient),
            wait=wait,
            stop=tenacity.stop_after_attempt(self._patience.attempts)
            | tenacity.stop_before_delay(self._patience.total_wait),
            reraise=True,
        )

        async def attempt() -> Result:
            return await request()

        return await attempts(attempt)


def pooled(
    items: Sequence[Item],
    work: Callable[[Item], Awaitable[Result]],
    workers: int,
    *,
    before: Callable[[], Coroutine[Any, Any, object]] | None = None,
    close: Callable[[], Awaitable[object]] | None = None,
) -> Generator[Result]:
    """Yield the result of each item as it comes, from a pool of workers on one event loop.

    before: runs ahead of the first item; close: at the end. What they or `work` raise is raised here. However this
    ends, no work goes on afterwards.
    """
    done: asyncio.Queue[Result | Exception] = asyncio.Queue()
    todo = iter(items)

    async def worker() -> None:
        try:
            for item in todo:
                await asyncio.sleep(0)  # items that never wait would hold up all others
                done.put_nowait(await work(item))
        except Exception as error:  # raised where results are read
            done.put_nowait(error)

    async def end() -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if close is not None:
            await close()

    with asyncio.Runner() as runner:
        tasks: list[asyncio.Task[None]] = []
        try:
            if before is not None:
                runner.run(before())
            tasks = [runner.get_loop().create_task(worker()) for _ in range(workers)]
            for _ in items:
                result = runner.run(done.get())
                if isinstance(result, Exception):
                    raise result
                yield result
        finally:
            runner.run(end())
