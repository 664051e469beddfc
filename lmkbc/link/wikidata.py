"""The Wikidata client: calls of the API, as a good citizen of a shared service. The one socket of linking.

At most three requests in flight and a bounded rate; `maxlag`, Retry-After and failures met with bounded patience; an
operator and a contact in every request. Etiquette: https://www.mediawiki.org/wiki/API:Etiquette.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.metadata import version
from typing import Any

import httpx
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt, stop_before_delay

from lmkbc.errors import InputError, LmkbcError

API_URL = "https://www.wikidata.org/w/api.php"
CONTACT = "LMKBC_CONTACT"
IN_FLIGHT = 3
MAXLAG = 5.0
"""Seconds of replication lag above which we stand back, and for how long at least: Manual:Maxlag_parameter."""
LONGEST_PAUSE = 60.0
PASSING = frozenset({"maxlag", "ratelimited", "readonly"})
NO_ENTITY = frozenset({"no-such-entity", "invalid-entity-id"})
Answer = dict[str, Any]


class _TryAgainError(Exception):
    """A failure that may pass. `after`: the seconds that the server asks us to wait, if it says."""

    def __init__(self, reason: str, after: float | None = None) -> None:
        super().__init__(reason)
        self.after = after


class Client:
    """Calls a MediaWiki API that serves Wikibase.

    contact: who runs this and how to reach them, "Jane Doe, jane@example.org" (default: $LMKBC_CONTACT); without it
    no client is made. rate: requests a second. attempts, patience: tries per request and the seconds they may take in
    all. backoff: first pause after a failure, doubled each time. timeout: seconds per request.
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
    ) -> None:
        if not api_url.startswith(("https://", "http://")):
            raise InputError(f"API URL {api_url!r} is no web address: give one like {API_URL}")
        self._url, self._timeout = api_url, timeout
        self._headers = {"User-Agent": user_agent(contact), "Accept-Encoding": "gzip, deflate"}
        self._interval, self._attempts, self._patience, self._backoff = 1 / rate, attempts, patience, backoff
        self._ssl = httpx.create_ssl_context()
        self._next = 0.0

    def run(self, calls: Sequence[Mapping[str, str]], receive: Callable[[int, Answer], None]) -> None:
        """Make all calls and hand each answer, with its call's position, to `receive` as it arrives.

        An answer that refuses an id (NO_ENTITY) is handed over too. Raises LmkbcError when a call fails for good;
        the answers received by then stay received.
        """
        asyncio.run(self._run(calls, receive))

    async def _run(self, calls: Sequence[Mapping[str, str]], receive: Callable[[int, Answer], None]) -> None:
        waiting = iter(enumerate(calls))
        async with httpx.AsyncClient(headers=self._headers, timeout=self._timeout, verify=self._ssl) as http:
            await asyncio.gather(*(self._work(http, waiting, receive) for _ in range(min(IN_FLIGHT, len(calls)))))

    async def _work(
        self,
        http: httpx.AsyncClient,
        waiting: Iterator[tuple[int, Mapping[str, str]]],
        receive: Callable[[int, Answer], None],
    ) -> None:
        """One of the requests in flight: take the next call until none is left."""
        for position, call in waiting:
            receive(position, await self._patiently(http, call))

    async def _patiently(self, http: httpx.AsyncClient, call: Mapping[str, str]) -> Answer:
        tries = AsyncRetrying(
            stop=stop_after_attempt(self._attempts) | stop_before_delay(self._patience),
            wait=self._pause,
            retry=retry_if_exception_type(_TryAgainError),
            reraise=True,
        )
        try:
            return await tries(self._once, http, call)
        except _TryAgainError as error:
            asked = call.get("search") or call.get("ids", "")
            raise LmkbcError(
                f"{self._url} did not answer for {asked[:80]!r} ({error}); what it answered so far is kept: "
                f"run the command again to go on"
            ) from None

    def _pause(self, state: RetryCallState) -> float:
        """Seconds until the next try, spread so that retries do not march in step; a server's wish binds all calls."""
        error = state.outcome.exception() if state.outcome else None
        asked = (error.after or 0.0) if isinstance(error, _TryAgainError) else 0.0
        self._next = max(self._next, time.monotonic() + asked)
        pause = min(self._backoff * 2.0 ** (state.attempt_number - 1), LONGEST_PAUSE)
        return max(asked, pause) + self._backoff * random.random()

    async def _once(self, http: httpx.AsyncClient, call: Mapping[str, str]) -> Answer:
        now = time.monotonic()
        start = max(now, self._next)
        self._next = start + self._interval
        await asyncio.sleep(start - now)
        try:
            response = await http.get(self._url, params={**call, "format": "json", "maxlag": f"{MAXLAG:.0f}"})
        except httpx.RequestError as error:
            raise _TryAgainError(f"{type(error).__name__}: {error}") from None
        return self._checked(response)

    def _checked(self, response: httpx.Response) -> Answer:
        """The answer, if it is one: lag and overload also come as HTTP 200."""
        after = retry_after(response.headers.get("Retry-After"))
        if response.status_code == httpx.codes.TOO_MANY_REQUESTS or response.is_server_error:
            raise _TryAgainError(f"HTTP {response.status_code}", after)
        if response.status_code != httpx.codes.OK:
            raise LmkbcError(f"{self._url} answered HTTP {response.status_code}: check the API URL and your contact")
        try:
            answer = response.json()
        except ValueError:
            raise _TryAgainError("a broken answer") from None
        error = answer.get("error", {}).get("code", "") if isinstance(answer, dict) else "no object"
        if error == "maxlag":
            raise _TryAgainError("the database lags", MAXLAG if after is None else after)
        if error in PASSING or error.startswith("internal_api_error"):
            raise _TryAgainError(error, after)
        if error and error not in NO_ENTITY:
            raise LmkbcError(f"{self._url} refused a request: {answer['error'].get('info', error)}")
        return dict(answer)


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
    return f"lmkbc/{version('lmkbc')} ({contact}) httpx/{httpx.__version__}"


def retry_after(value: str | None) -> float | None:
    """Seconds named by a Retry-After header, which holds a number or a date; None where it is absent or neither."""
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None
