"""The Wikidata client: calls of the API, as a good citizen of a shared service. The one socket of linking.

At most three requests in flight and a bounded rate; `maxlag`, Retry-After and failures met with bounded patience; an
operator and a contact in every request. Etiquette: https://www.mediawiki.org/wiki/API:Etiquette. A reply is bounded in
length and time, and nothing of it passes that is not of the shape that was asked for.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from typing import TypeVar

import httpx2
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt, stop_before_delay

from lmkbc.errors import InputError, LmkbcError
from lmkbc.files.address import is_web_address
from lmkbc.files.certificates import trusted
from lmkbc.link.api import Call, Refusal
from lmkbc.link.bounded import ACCEPTED, BodyError, read_body
from lmkbc.link.schema import ShapeError, decode
from lmkbc.models.server.retry_after import retry_after

T = TypeVar("T")
API_URL = "https://www.wikidata.org/w/api.php"
CONTACT = "LMKBC_CONTACT"
IN_FLIGHT = 3
MAXLAG = 5.0
"""Seconds of replication lag above which we stand back, and for how long at least: Manual:Maxlag_parameter."""
LONGEST_PAUSE = 60.0
LARGEST_REPLY = 32 << 20
"""Bytes of a reply, unpacked. The API itself cuts its replies at 12 MB of values (Manual:$wgAPIMaxResultSize)."""
PASSING = frozenset({"maxlag", "ratelimited", "readonly"})


class _TryAgainError(Exception):
    """A failure that may pass. `after`: the seconds that the server asks us to wait, if it says."""

    def __init__(self, reason: str, after: float | None = None) -> None:
        super().__init__(reason)
        self.after = after


class Client:
    """Calls a MediaWiki API that serves Wikibase.

    contact: who runs this and how to reach them, "Jane Doe, jane@example.org" (default: $LMKBC_CONTACT); without it
    no client is made. rate: requests a second. attempts, patience: tries per request and the seconds they may take in
    all. backoff: first pause after a failure, doubled each time. timeout: seconds of silence. deadline: seconds per
    request, from the first byte sent to the last one read.
    """

    def __init__(
        self,
        contact: str | None = None,
        api_url: str = API_URL,
        *,
        rate: float = 10.0,
        attempts: int = 6,
        patience: float = 300.0,
        backoff: float = 1.0,
        timeout: float = 20.0,
        deadline: float = 60.0,
    ) -> None:
        if not is_web_address(api_url):
            raise InputError(f"API URL {api_url!r} is no web address: give one like {API_URL}")
        self._url, self._timeout, self._deadline = api_url, timeout, deadline
        self._headers = {"User-Agent": user_agent(contact), "Accept-Encoding": ACCEPTED}
        self._interval, self._attempts, self._patience, self._backoff = 1 / rate, attempts, patience, backoff
        self._next = 0.0

    def run(self, calls: Sequence[Call[T]], receive: Callable[[int, T | None], None]) -> None:
        """Make all calls and hand what each answers, with its call's position, to `receive` as it arrives.

        None stands for an error that the call counts as an answer (`Call.passes`). Raises LmkbcError when calls
        failed for good: at the end for one or two of them, at once when the API refuses us or as many failed as are in
        flight, which is when nothing answers.
        """
        asyncio.run(self._run(calls, receive))

    async def _run(self, calls: Sequence[Call[T]], receive: Callable[[int, T | None], None]) -> None:
        waiting, failed = iter(enumerate(calls)), list[str]()
        async with httpx2.AsyncClient(headers=self._headers, timeout=self._timeout, verify=trusted()) as http:
            try:
                async with asyncio.TaskGroup() as in_flight:
                    for _ in range(min(IN_FLIGHT, len(calls))):
                        in_flight.create_task(self._work(http, waiting, receive, failed))
            except BaseExceptionGroup as group:
                raise group.exceptions[0] from None
        if failed:
            more = f", nor for {len(failed) - 1} more" if len(failed) > 1 else ""
            raise LmkbcError(
                f"{self._url} did not answer for {failed[0]}{more}; what it answered so far is kept: "
                f"run the command again to go on"
            )

    async def _work(
        self,
        http: httpx2.AsyncClient,
        waiting: Iterator[tuple[int, Call[T]]],
        receive: Callable[[int, T | None], None],
        failed: list[str],
    ) -> None:
        """One of the requests in flight: take the next call until none is left or nothing answers."""
        for position, call in waiting:
            try:
                answer = await self._patiently(http, call)
            except _TryAgainError as error:
                texts = call.params.get("search") or call.params.get("ids", "")
                failed.append(f"{texts[:80]!r} ({error})")
            else:
                receive(position, answer)
            if len(failed) >= IN_FLIGHT:
                break

    async def _patiently(self, http: httpx2.AsyncClient, call: Call[T]) -> T | None:
        tries = AsyncRetrying(
            stop=stop_after_attempt(self._attempts) | stop_before_delay(self._patience),
            wait=self._pause,
            retry=retry_if_exception_type(_TryAgainError),
            reraise=True,
        )
        answer: T | None = await tries(self._once, http, call)
        return answer

    def _pause(self, state: RetryCallState) -> float:
        """Seconds until the next try, spread so that retries do not march in step; a server's wish binds all calls."""
        error = state.outcome.exception() if state.outcome else None
        wait = (error.after or 0.0) if isinstance(error, _TryAgainError) else 0.0
        self._next = max(self._next, time.monotonic() + min(wait, self._patience))
        pause = min(self._backoff * 2.0 ** (state.attempt_number - 1), LONGEST_PAUSE)
        return max(wait, pause) + self._backoff * random.random()

    async def _once(self, http: httpx2.AsyncClient, call: Call[T]) -> T | None:
        now = time.monotonic()
        start = max(now, self._next)
        self._next = start + self._interval
        await asyncio.sleep(start - now)
        params = {**call.params, "format": "json", "maxlag": f"{MAXLAG:.0f}"}
        try:
            async with asyncio.timeout(self._deadline), http.stream("GET", self._url, params=params) as response:
                after = self._checked(response)
                body = await read_body(response, LARGEST_REPLY)
            reply = decode(body, call.decoder)
            if reply.error is None:
                return call.read(reply)
            if reply.error.code in call.passes:
                return None
            raise self._refusal(reply.error, after)
        except TimeoutError:
            raise _TryAgainError(f"no whole reply in {self._deadline:g} s") from None
        except httpx2.RequestError as error:
            raise _TryAgainError(f"{type(error).__name__}: {error}") from None
        except (BodyError, ShapeError) as error:
            raise _TryAgainError(f"a broken reply: {str(error)[:200]}") from None

    def _checked(self, response: httpx2.Response) -> float | None:
        """The seconds that a good reply asks us to wait; an error where its status is another."""
        after = retry_after(response.headers.get("Retry-After"))
        if response.status_code == httpx2.codes.TOO_MANY_REQUESTS or response.is_server_error:
            raise _TryAgainError(f"HTTP {response.status_code}", after)
        if response.status_code != httpx2.codes.OK:
            raise LmkbcError(f"{self._url} answered HTTP {response.status_code}: check the API URL and your contact")
        return after

    def _refusal(self, error: Refusal, after: float | None) -> Exception:
        """What becomes of an error that came as HTTP 200, as lag and overload do, which may pass."""
        if error.code == "maxlag":
            return _TryAgainError("the database lags", MAXLAG if after is None else after)
        if error.code in PASSING or error.code.startswith("internal_api_error"):
            return _TryAgainError(error.code[:80], after)
        return LmkbcError(f"{self._url} refused a request: {(error.info or error.code)[:200]}")


def user_agent(contact: str | None) -> str:
    """The User-Agent that Wikimedia's policy asks for: the program, and who runs it (meta: User-Agent policy)."""
    contact = " ".join((contact or os.environ.get(CONTACT, "")).split())
    if "@" not in contact and "://" not in contact:
        raise InputError(
            f"Wikidata asks who is calling: set {CONTACT} to your name and an address or page, as in "
            f"'Jane Doe, jane@example.org'"
        )
    if not contact.isascii():
        raise InputError(f"contact {contact!r} cannot be sent in a header: write it in ASCII")
    return f"lmkbc/{version('lmkbc')} ({contact}) httpx2/{httpx2.__version__}"
