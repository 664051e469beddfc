"""The Wikidata client. It follows the etiquette of the API, and opens the only socket of linking.

At most three requests run at once, at a bounded rate. `maxlag`, Retry-After and failures lead to a bounded number of
retries. Every request names an operator and a contact. Etiquette: https://www.mediawiki.org/wiki/API:Etiquette. A reply
is bounded in length and time, and is refused if it has another shape than expected.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from importlib.metadata import version

import httpx2

from lmkbc.errors import InputError, LmkbcError
from lmkbc.http import (
    CallError,
    Pace,
    RequestLimits,
    by_proxy,
    is_web_address,
    pooled,
    printable,
    retry_after,
)
from lmkbc.link.wikibase import IDS_PER_CALL, ApiCall, Refusal, ShapeError, T, decode
from lmkbc.web_client import RefusedBodyError, WebClient

API_URL = "https://www.wikidata.org/w/api.php"
CONTACT = "LMKBC_CONTACT"
IN_FLIGHT = 3
MAXLAG = 5.0
"""Seconds of replication lag above which we wait, and the least seconds of that wait: Manual:Maxlag_parameter."""
PASSING = frozenset({"maxlag", "ratelimited", "readonly"})


class Client:
    """Client of a MediaWiki API that serves Wikibase.

    contact: name and address of the operator, as in "Jane Doe, jane@example.org" (default: $LMKBC_CONTACT); required.
    rate: requests per second.
    patience: seconds that the retries of a request may take.
    timeout: seconds without data.
    deadline: seconds per request, from the first byte sent to the last byte read.
    """

    def __init__(
        self,
        contact: str | None = None,
        api_url: str = API_URL,
        *,
        rate: float = 10.0,
        patience: float = 300.0,
        timeout: float = 20.0,
        deadline: float = 60.0,
    ) -> None:
        if not is_web_address(api_url):
            raise InputError(f"API URL {api_url!r} is no web address: give one like {API_URL}")
        self._url, self._timeout, self._deadline = api_url, timeout, deadline
        self._headers = {"User-Agent": user_agent(contact)}
        self._limits = RequestLimits(requests_per_minute=60 * rate, total_wait=patience)

    def answers(self, calls: Sequence[ApiCall[T]]) -> Iterator[tuple[int, T | None]]:
        """Make all calls, and yield (position, answer) when each answer arrives.

        An answer is None for an error code in `ApiCall.passes`. LmkbcError if calls failed for good. One or two
        failures are reported at the end. If the API refuses requests, or as many calls failed as run at once, it stops
        at once.
        """
        http = WebClient(self._url, headers=self._headers, timeout=self._timeout)
        pace, failed = Pace(self._limits), list[str]()

        async def ask(position: int) -> tuple[int, T | None] | None:
            call = calls[position]
            try:
                return position, await pace.retrying(lambda: self._once(http, pace, call))
            except CallError as error:
                texts = call.params.get("search") or call.params.get("ids") or call.params["query"].splitlines()[0]
                failed.append(f"{texts[:80]!r} ({error})")
                return None

        with closing(pooled(range(len(calls)), ask, IN_FLIGHT, close=http.aclose)) as arrived:
            for answer in arrived:
                if answer is not None:
                    yield answer
                if len(failed) >= IN_FLIGHT:
                    break
        if failed:
            more = f", nor for {len(failed) - 1} more" if len(failed) > 1 else ""
            raise LmkbcError(
                f"{self._url} did not answer for {failed[0]}{more}; what it answered so far is kept: "
                f"run the command again to go on"
            )

    def entities(
        self, ids: Sequence[str], call: Callable[[Sequence[str]], ApiCall[dict[str, T]]]
    ) -> Iterator[Mapping[str, T | None]]:
        """Request ids in groups, each by the call that `call` makes of it, and yield their entities when they arrive.

        The API refuses a whole group for one invalid id, so its halves are requested. It shortens a long reply, so the
        missing ids are requested again. None: no entity.
        """
        groups = [ids[at : at + IDS_PER_CALL] for at in range(0, len(ids), IDS_PER_CALL)]
        while groups:
            left: list[Sequence[str]] = []
            for at, entities in self.answers([call(group) for group in groups]):
                group = groups[at]
                if entities is not None:
                    yield entities
                    left.append([name for name in group if name not in entities])
                elif len(group) == 1:
                    yield {group[0]: None}
                else:
                    left += [group[: len(group) // 2], group[len(group) // 2 :]]
            groups = [group for group in left if group]

    async def _once(self, http: httpx2.AsyncClient, pace: Pace, call: ApiCall[T]) -> T | None:
        await pace.enter()
        params = {**call.params, "format": "json", "maxlag": f"{MAXLAG:.0f}"}
        try:
            async with asyncio.timeout(self._deadline):
                response = await http.get(self._url, params=params)
            after = self._checked(response)
            reply = decode(response.content, call.decoder)
            if reply.error is None:
                return call.read(reply)
            if reply.error.code in call.passes:
                return None
            raise self._refusal(reply.error, after)
        except TimeoutError:
            raise CallError(f"no whole reply in {self._deadline:g} s") from None
        except httpx2.RequestError as error:
            raise CallError(
                f"{type(error).__name__}: {error}{by_proxy(self._url)}",
                transient=not isinstance(error, RefusedBodyError),
            ) from None
        except ShapeError as error:
            raise CallError(f"a broken reply: {str(error)[:200]}") from None

    def _checked(self, response: httpx2.Response) -> float | None:
        """Return the seconds to wait that a good reply names, or None. Raises an error for another status."""
        after = retry_after(response.headers.get("Retry-After"))
        if response.status_code == httpx2.codes.TOO_MANY_REQUESTS or response.is_server_error:
            raise CallError(f"HTTP {response.status_code}", wait=after)
        if response.status_code != httpx2.codes.OK:
            raise LmkbcError(f"{self._url} answered HTTP {response.status_code}: check the API URL and your contact")
        return after

    def _refusal(self, error: Refusal, after: float | None) -> Exception:
        """Return the exception for an API error with HTTP 200: CallError if a retry may help, else LmkbcError."""
        if error.code == "maxlag":
            return CallError("the database lags", wait=MAXLAG if after is None else after)
        if error.code in PASSING or error.code.startswith("internal_api_error"):
            return CallError(printable(error.code[:80]), wait=after)
        return LmkbcError(f"{self._url} refused a request: {printable((error.info or error.code)[:200])}")


def user_agent(contact: str | None) -> str:
    """Return the User-Agent: the program and its operator, as Wikimedia's policy requires (meta: User-Agent policy)."""
    contact = " ".join((contact or os.environ.get(CONTACT, "")).split())
    if "@" not in contact and "://" not in contact:
        raise InputError(
            f"Wikidata wants to know who asks: set {CONTACT}, or --contact where a command has it, to your name and an "
            "e-mail address or page, as in 'Jane Doe, jane@example.org', or ask nothing: link with --search-table, "
            "make relations with --dump, audit with --known FILE"
        )
    if not contact.isascii():
        raise InputError(f"contact {contact!r} cannot be sent in a header: write it in ASCII")
    return f"lmkbc/{version('lmkbc')} ({contact}) httpx2/{httpx2.__version__}"
