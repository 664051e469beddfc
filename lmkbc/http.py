"""HTTP for model servers, Wikidata and downloads: checks of addresses, certificates, pace, retries and response limits.

The openai SDK uses it too. A request with a key follows no redirect.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import math
import os
import ssl
import zlib
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from lmkbc.errors import InputError, LmkbcError

if TYPE_CHECKING:
    import httpx2
    import tenacity

Item = TypeVar("Item")
Result = TypeVar("Result")

LONGEST_PAUSE = 60.0
"""Maximum number of seconds between two attempts, unless the server asks for more."""

HEADERS = {"Accept-Encoding": "gzip"}
"""Gzip is the only encoding that is unpacked; `read_body` refuses others."""
_GZIP = zlib.MAX_WBITS | 16

log = logging.getLogger(__name__)


class CallError(LmkbcError):
    """A request that got no answer.

    transient: whether a retry may help. wait: seconds that the server asks to wait. once: whether a second such error
    of a request is final.
    """

    def __init__(self, reason: str, *, transient: bool = True, wait: float | None = None, once: bool = False) -> None:
        super().__init__(reason)
        self.transient = transient
        self.wait = wait
        self.once = once


class TooLargeError(CallError):
    """A response body that is larger than its limit."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"its response is larger than {limit / 2**20:g} MiB", transient=False)


def is_web_address(url: str) -> bool:
    """Return whether a URL is http or https and names a host that can be looked up.

    Invisible characters, a wrong port, wrong brackets and empty parts of the host make it False.
    """
    if not url.isprintable() or " " in url:
        return False
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna")
        return parts.scheme in ("http", "https") and bool(host) and parts.port != 0
    except ValueError:
        return False


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine itself."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def connection(url: str) -> dict[str, Any]:
    """Return the settings of a client for an address: its certificates, and the proxy of the environment.

    An address of this machine has no proxy. Raise InputError, which names the variable, for a proxy or certificates
    that cannot be used.
    """
    import httpx2

    variable, proxy = _proxy(url)
    secure = urlsplit(url).scheme == "https"
    context = _certificates(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"), secure=secure)
    try:
        httpx2.AsyncHTTPTransport(verify=context, proxy=proxy)
    except (ValueError, ImportError, httpx2.InvalidURL):
        raise InputError(
            f"{variable} names a proxy of the kind {(proxy or '').partition('://')[0]!r}, which cannot be used: unset "
            f"{variable}, or name a proxy whose address begins with http://"
        ) from None
    return {"verify": context, "proxy": proxy, "trust_env": False}


def proxy_variable(url: str) -> str:
    """Return the environment variable that names the proxy for an address; "" if there is no proxy."""
    return _proxy(url)[0]


def by_proxy(url: str) -> str:
    """Return a remark for errors about the proxy for an address; "" if there is no proxy."""
    variable = proxy_variable(url)
    return f", by way of the proxy that {variable} names" if variable else ""


def _proxy(url: str) -> tuple[str, str | None]:
    """Return the proxy for an address, after the name of its variable."""
    parts, proxies = urlsplit(url), getproxies()
    host = parts.hostname or ""
    scheme = next((name for name in (parts.scheme, "all") if proxies.get(name)), None)
    if scheme is None or is_loopback(host) or proxy_bypass(f"{host}:{parts.port}" if parts.port else host):
        return "", None
    name, proxy = f"{scheme}_proxy", proxies[scheme]
    variable = next((name for name in (name, name.upper()) if os.environ.get(name)), "the system's settings")
    return variable, proxy if "://" in proxy else f"http://{proxy}"


@cache
def _certificates(file: str | None, folder: str | None, *, secure: bool) -> ssl.SSLContext:
    """Return the TLS context with the trusted certificates, of the file or folder that the environment names.

    It is made once per process, since that takes longer than many requests. secure: whether a certificate will be
    checked; otherwise, wrong names are only a warning.
    """
    import httpx2

    try:
        if file or not folder or os.path.isdir(folder):
            return httpx2.create_ssl_context()
        raise FileNotFoundError
    except OSError as error:  # an SSLError is one, too
        variable, given = ("SSL_CERT_FILE", file) if file else ("SSL_CERT_DIR", folder)
        reason = "does not exist" if isinstance(error, FileNotFoundError) else f"holds no certificates ({error})"
        message = f"{variable} is {given!r}, which {reason}: name one that does, or unset {variable}"
        if secure:
            raise InputError(message) from None
        log.warning(message)
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # it trusts nobody


def retry_after(value: str | None) -> float | None:
    """Return the seconds that a Retry-After header gives, as a number or a date (RFC 9110, section 10.2.3).

    Return None if the header is absent or neither.
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
    """Read, unpack and close a streamed response of at most `limit` bytes, packed and unpacked.

    Memory stays within the limit, since unpacking stops there. Raise TooLargeError beyond the limit. Raise CallError if
    the body is cut off, or packed in an encoding that was not requested.
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

    requests_per_minute, tokens_per_minute: None for no limit.
    attempts: maximum number of attempts of one request, the first included.
    total_wait: maximum seconds that the retries of a request may take, waits that the server asks for included.
    first_wait: seconds before the first retry; the wait doubles before each next one.
    """

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    attempts: int = 6
    total_wait: float = 300.0
    first_wait: float = 1.0


class Pace:
    """Start times of requests to a server, spread evenly over the minute. All requests to a server share one object."""

    def __init__(self, patience: RequestLimits) -> None:
        self._patience = patience
        self._request = 60 / patience.requests_per_minute if patience.requests_per_minute else 0.0
        self._token = 60 / patience.tokens_per_minute if patience.tokens_per_minute else 0.0
        self._next_request = self._next_token = self._held = 0.0

    async def enter(self, tokens: int = 0) -> None:
        """Wait until a request of about `tokens` tokens may start."""
        now = asyncio.get_running_loop().time()
        start = max(now, self._next_request, self._next_token, self._held)
        self._next_request = max(now, self._next_request, start) + self._request
        self._next_token = max(now, self._next_token, start) + tokens * self._token
        if start > now:
            await asyncio.sleep(start - now)

    def correct(self, guessed: int, used: int) -> None:
        """Correct the count by the tokens that a request really used."""
        self._next_token += (used - guessed) * self._token

    def hold(self, seconds: float) -> None:
        """Let no request start for `seconds` seconds."""
        self._held = max(self._held, asyncio.get_running_loop().time() + seconds)

    async def retrying(self, request: Callable[[], Awaitable[Result]]) -> Result:
        """Return the result of a request, retried after transient failures; raise the last failure.

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

        failed_once = False

        async def attempt() -> Result:
            nonlocal failed_once
            try:
                return await request()
            except CallError as error:
                error.transient &= not (error.once and failed_once)
                failed_once |= error.once
                raise

        return await attempts(attempt)


def pooled(
    items: Sequence[Item],
    work: Callable[[Item], Awaitable[Result]],
    workers: int,
    *,
    before: Callable[[], Coroutine[Any, Any, object]] | None = None,
    close: Callable[[], Awaitable[object]] | None = None,
) -> Generator[Result]:
    """Yield the result of each item as soon as it is there, from a pool of workers on one event loop.

    before: coroutine that runs before the first item. close: coroutine that runs at the end. Exceptions of `work`,
    `before` and `close` are raised here. All work stops when the generator ends, for whatever reason.
    """
    done: asyncio.Queue[Result | Exception] = asyncio.Queue()
    todo = iter(items)

    async def worker() -> None:
        try:
            for item in todo:
                await asyncio.sleep(0)  # lets other workers run if `work` never waits
                done.put_nowait(await work(item))
        except Exception as error:  # raised in the reading loop below
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
