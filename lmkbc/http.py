"""HTTP for model servers, Wikidata and downloads: checks of addresses, certificates, pace and retries.

The openai SDK uses it too. A request with a key follows no redirect.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import math
import os
import random
import ssl
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies

from lmkbc.errors import InputError, LmkbcError

if TYPE_CHECKING:
    import tenacity

Item = TypeVar("Item")
Result = TypeVar("Result")

log = logging.getLogger(__name__)

REPORTED = 3
"""Number of failed attempts of one request after which its retries are reported. A late one is reported at once."""

CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""Environment variables that name other certificates."""

ATTEMPTS = 6
"""Maximum number of attempts of one request, the first included."""

FIRST_WAIT = 1.0
"""Seconds before the first retry; the wait doubles before each next one. A short `total_wait` shortens it."""


class CallError(LmkbcError):
    """A request that got no answer.

    transient: whether a retry may help. wait: seconds that the server asks to wait.
    """

    def __init__(self, reason: str, *, transient: bool = True, wait: float | None = None) -> None:
        super().__init__(reason)
        self.transient = transient
        self.wait = wait


class LateError(CallError):
    """A request that got no whole answer in time."""


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
    """Return the settings of a client for an address: its certificates, and whether the environment's proxies hold.

    An address of this machine has no proxy. Raise InputError for proxies or certificates that cannot be used.
    """
    import httpx2

    settings: dict[str, Any] = {
        "verify": _certificates(*map(os.environ.get, CERTIFICATES)),
        "trust_env": not is_loopback(urlsplit(url).hostname or ""),
    }
    try:
        httpx2.AsyncClient(**settings)
    except (ValueError, ImportError, httpx2.InvalidURL):
        raise InputError(
            "HTTP_PROXY, HTTPS_PROXY or ALL_PROXY names a proxy that cannot be used: unset it, or name a proxy whose "
            "address begins with http://"
        ) from None
    return settings


def by_proxy(url: str) -> str:
    """Return a remark for errors about an address if the environment names proxies; "" if there is none."""
    local = is_loopback(urlsplit(url).hostname or "")
    return "" if local or not getproxies() else ", by way of the proxy that the environment names"


def printable(text: str) -> str:
    """Return the words of a server on one line, without invisible characters."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


@cache
def _certificates(*_: str | None) -> ssl.SSLContext:
    """Return the TLS context with the trusted certificates, which depend on the values of `CERTIFICATES`.

    It is made once for them, since that takes longer than many requests.
    """
    import httpx2

    try:
        return httpx2.create_ssl_context()
    except OSError as error:  # an SSLError is one, too
        raise InputError(
            f"SSL_CERT_FILE or SSL_CERT_DIR names certificates that cannot be read ({error}): correct or unset it"
        ) from None


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


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    """Limits on requests to a server, and on retries.

    requests_per_minute, tokens_per_minute: None for no limit.
    total_wait: maximum seconds that the retries of a request may take, waits that the server asks for included; 0 for
    no retry.
    """

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    total_wait: float = 300.0


class Pace:
    """Start times of requests to a server, spread evenly over the minute. All requests to a server share one object."""

    def __init__(self, patience: RequestLimits) -> None:
        self._patience = patience
        self._request = 60 / patience.requests_per_minute if patience.requests_per_minute else 0.0
        self._token = 60 / patience.tokens_per_minute if patience.tokens_per_minute else 0.0
        self._next_request = self._next_token = self._held = 0.0
        self._reported = False

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

        A wait that the server asks for holds back all requests. The log says once that a request fails again and again.
        """
        import tenacity

        most = self._patience.total_wait
        first = min(FIRST_WAIT, most / 2**ATTEMPTS)

        def wait(state: tenacity.RetryCallState) -> float:
            error = state.outcome.exception() if state.outcome else None
            asked = error.wait if isinstance(error, CallError) else None
            if asked is not None and asked <= most:
                self.hold(asked)
            seconds = first * 2 ** (state.attempt_number - 1) if asked is None else asked
            return seconds + random.uniform(0, first / 2)

        def report(state: tenacity.RetryCallState) -> None:
            error = state.outcome.exception() if state.outcome else None
            is_due = state.attempt_number >= REPORTED or isinstance(error, LateError)
            if is_due and not self._reported:
                self._reported = True
                log.info("no answer yet, trying up to %d times: %s", ATTEMPTS, error)

        attempts = tenacity.AsyncRetrying(
            before_sleep=report,
            retry=tenacity.retry_if_exception(lambda error: isinstance(error, CallError) and error.transient),
            wait=wait,
            stop=tenacity.stop_after_attempt(ATTEMPTS) | tenacity.stop_before_delay(most),
            reraise=True,
        )

        async def attempt() -> Result:
            return await request()

        return await attempts(attempt)


@contextmanager
def event_loop() -> Iterator[tuple[asyncio.AbstractEventLoop, Callable[[Coroutine[Any, Any, Any]], Any]]]:
    """Give an event loop, and a function that runs a coroutine on it to its end and returns the result.

    If a loop already runs in this thread, as in a notebook, another thread runs this one.
    """
    runner = asyncio.Runner()
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        with runner:
            yield runner.get_loop(), runner.run
        return
    with ThreadPoolExecutor(1) as thread:
        try:
            yield thread.submit(runner.get_loop).result(), lambda work: thread.submit(runner.run, work).result()
        finally:
            thread.submit(runner.close).result()


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

    with event_loop() as (loop, run):
        tasks: list[asyncio.Task[None]] = []
        try:
            if before is not None:
                run(before())
            tasks = [loop.create_task(worker()) for _ in range(workers)]
            for _ in items:
                result = run(done.get())
                if isinstance(result, Exception):
                    raise result
                yield result
        finally:
            loop.call_soon_threadsafe(done.put_nowait, CallError("stopped"))  # if another thread still waits for one
            run(end())
