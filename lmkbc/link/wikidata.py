"""Wikidata: the parts of Wikibase's data model that are read, calls of its API, and the client that makes them.

Formats: https://doc.wikimedia.org/Wikibase/master/php/docs_topics_json.html, and
https://www.wikidata.org/w/api.php?action=help&modules=wbsearchentities and =wbgetentities. Bytes of another shape raise
ShapeError, so unchecked data is never cached, indexed or requested.

The client follows the etiquette of the API (https://www.mediawiki.org/wiki/API:Etiquette), and opens the only socket of
linking. At most three requests run at once, at a bounded rate. `maxlag`, Retry-After and failures lead to a bounded
number of retries. Every request names an operator and a contact.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import version
from typing import Annotated, Any, Generic, TypeVar

import httpx2
import msgspec

from lmkbc.errors import InputError, LmkbcError
from lmkbc.http import (
    CallError,
    Pace,
    RequestLimits,
    by_proxy,
    connection,
    is_web_address,
    pooled,
    retry_after,
)
from lmkbc.link.disambiguation import Hit
from lmkbc.names import QID

T = TypeVar("T")
V = TypeVar("V")
C = TypeVar("C")
E = TypeVar("E", bound="WikibaseEntity[Any]")
Qid = Annotated[str, msgspec.Meta(pattern=rf"\A{QID}\Z")]
PropertyOrItem = Annotated[str, msgspec.Meta(pattern=r"\A[PQ][1-9][0-9]{0,11}\Z")]
Text = Annotated[str, msgspec.Meta(max_length=10_000)]
"""A label, an alias or a description: at most 250 characters in Wikidata; a mirror may allow more."""
Empty = Annotated[list[None], msgspec.Meta(max_length=0)]
"""Empty map: PHP writes it as an empty list."""


class ShapeError(ValueError):
    """An error for bytes of another shape than expected. Its text names the problem."""


class Term(msgspec.Struct, gc=False):
    """A label, a description or an alias in one language."""

    value: Text


class EntityId(msgspec.Struct, gc=False):
    """The value of a statement about items."""

    id: Qid | None = None  # old dumps hold a number instead


class DataValue(msgspec.Struct, Generic[V], gc=False):
    """Value of a snak."""

    value: V


class Snak(msgspec.Struct, Generic[V], gc=False):
    """Property and value; `datavalue` is absent for "unknown value" and "no value"."""

    datavalue: DataValue[V] | None = None


class Statement(msgspec.Struct, Generic[V], gc=False):
    """A claim with its rank. V: type of its value."""

    mainsnak: Snak[V]
    rank: str = "normal"


class _Redirect(msgspec.Struct, gc=False, rename={"origin": "from"}):
    origin: PropertyOrItem


class WikibaseEntity(msgspec.Struct, Generic[C], gc=False):
    """An entity. `missing` is set where no entity has this id, `redirects` where another one took over.

    C: type of its claims, with a field for each property that is read.
    """

    id: str
    labels: dict[str, Term] | Empty = {}
    descriptions: dict[str, Term] | Empty = {}
    aliases: dict[str, list[Term]] | Empty = {}
    claims: C | Empty = []
    sitelinks: dict[str, msgspec.Raw] | Empty = {}
    redirects: _Redirect | None = None
    missing: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class ClassClaims(msgspec.Struct, gc=False):
    """The claims that state an entity's classes."""

    P31: list[Statement[EntityId]] = []
    P279: list[Statement[EntityId]] = []


def picked(values: dict[str, V] | list[None], keys: Iterable[str]) -> list[V]:
    """Return the values of some keys of a map, those that it has, in the order of the keys."""
    return [values[key] for key in keys if key in values] if isinstance(values, dict) else []


def items(statements: list[Statement[EntityId]]) -> tuple[str, ...]:
    """Return the items that statements name, each once, without deprecated statements."""
    values = (s.mainsnak.datavalue.value.id for s in statements if s.mainsnak.datavalue and s.rank != "deprecated")
    return tuple(dict.fromkeys(value for value in values if value))


def decode(raw: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """Decode one JSON value of the decoder's type. ShapeError for all else, deep nesting included."""
    try:
        return decoder.decode(raw)
    except RecursionError:
        raise ShapeError("nested too deeply") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ShapeError(str(error)) from None


IDS_PER_CALL = 50
"""The API's own limit for wbgetentities."""
NO_ENTITY = frozenset({"no-such-entity", "invalid-entity-id"})


class SearchHit(msgspec.Struct, frozen=True, gc=False):
    """One hit of a wbsearchentities reply."""

    id: Qid
    label: Text = ""
    description: Text = ""
    name: Text = ""


class Record(msgspec.Struct, frozen=True, gc=False):
    """Fields of an entity that linking keeps. `id` follows redirects: a merged entity has the id of its target."""

    id: Qid
    label: Text = ""
    description: Text = ""
    instance_of: tuple[Qid, ...] = ()
    subclass_of: tuple[Qid, ...] = ()
    sitelinks: Annotated[int, msgspec.Meta(ge=0)] = 0

    def hit(self, classes: Sequence[str], name: str = "") -> Hit:
        """Return the entity as a hit. classes: the classes of the entity."""
        return Hit(self.id, self.label, self.description, tuple(classes), self.sitelinks, name)


class Refusal(msgspec.Struct, gc=False):
    """An error that the API sends with status HTTP 200."""

    code: str
    info: str = ""


class ApiReply(msgspec.Struct):
    """Fields that every reply of the API may hold; subclasses add their own content."""

    error: Refusal | None = None


class _Match(msgspec.Struct, gc=False):
    text: Text = ""


class _FoundHit(SearchHit, frozen=True, gc=False):
    match: _Match = msgspec.field(default_factory=_Match)


class _SearchReply(ApiReply):
    search: Annotated[list[_FoundHit], msgspec.Meta(max_length=500)] | msgspec.UnsetType = msgspec.UNSET


@dataclass(frozen=True, slots=True)
class ApiCall(Generic[T]):
    """A request to the API, and how to read its reply.

    decoder: decoder for the reply's JSON. read: function that turns the decoded reply into values, or raises
    ShapeError. passes: error codes that mean "no result" (None) and not a failure.
    """

    params: Mapping[str, str]
    decoder: msgspec.json.Decoder[Any]
    read: Callable[[Any], T]
    passes: frozenset[str] = frozenset()


class _Item(WikibaseEntity[ClassClaims]):
    id: Qid


class EntitiesReply(ApiReply, Generic[V]):
    """Reply of wbgetentities. V: type of its entities."""

    entities: dict[str, V] | msgspec.UnsetType = msgspec.UNSET


_SEARCH: msgspec.json.Decoder[_SearchReply] = msgspec.json.Decoder(_SearchReply)
_ITEMS = msgspec.json.Decoder(EntitiesReply[_Item])


def search(text: str, language: str, limit: int) -> ApiCall[list[SearchHit]]:
    """Return a wbsearchentities call. Its result is a list of hits, best first."""
    params = {
        "action": "wbsearchentities",
        "search": text,
        "language": language,
        "uselang": language,
        "type": "item",
        "limit": str(limit),
    }
    return ApiCall(params, _SEARCH, _hits)


def entities(
    ids: Sequence[str],
    decoder: msgspec.json.Decoder[EntitiesReply[E]],
    read: Callable[[E], T],
    **params: str,
) -> ApiCall[dict[str, T]]:
    """Return a wbgetentities call for at most IDS_PER_CALL ids. Its result has what `read` makes of each entity, by id.

    The server shortens a reply that is too long. So a result may lack some ids, but never all. If one id is invalid,
    the API refuses the whole call. params: of the request.
    """
    asked = {"action": "wbgetentities", "ids": "|".join(ids), **params}
    return ApiCall(asked, decoder, lambda reply: _answered(reply, ids, read), NO_ENTITY)


def records(ids: Sequence[str], language: str) -> ApiCall[dict[str, Record | None]]:
    """Return the call of `entities` whose result is a record per id, None for no entity."""
    props = "info|labels|descriptions|claims|sitelinks"
    return entities(
        ids,
        _ITEMS,
        lambda item: _record(item, language),
        props=props,
        languages=language,
        languagefallback="1",
    )


def _hits(reply: _SearchReply) -> list[SearchHit]:
    if reply.search is msgspec.UNSET:
        raise ShapeError("Object missing required field `search`")
    return [SearchHit(hit.id, hit.label, hit.description, hit.match.text) for hit in reply.search]


def _answered(reply: EntitiesReply[E], ids: Sequence[str], read: Callable[[E], T]) -> dict[str, T]:
    if reply.entities is msgspec.UNSET:
        raise ShapeError("Object missing required field `entities`")
    by_id: dict[str, E] = {}
    for entity in reply.entities.values():
        by_id[entity.redirects.origin if entity.redirects else entity.id] = by_id[entity.id] = entity
    answered = {name: read(by_id[name]) for name in ids if name in by_id}
    if not answered:
        raise ShapeError("none of the entities that were asked for")
    return answered


def _record(item: _Item, language: str) -> Record | None:
    if item.missing is not msgspec.UNSET:
        return None
    claims = item.claims if isinstance(item.claims, ClassClaims) else ClassClaims()
    label, description = (
        "".join(term.value for term in picked(terms, [language])) for terms in (item.labels, item.descriptions)
    )
    return Record(item.id, label, description, items(claims.P31), items(claims.P279), len(item.sitelinks))


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
    attempts, patience: tries per request, and their seconds in total.
    backoff: seconds of the first wait after a failure, doubled each time.
    timeout: seconds without data.
    deadline: seconds per request, from the first byte sent to the last byte read.
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
        self._headers = {"User-Agent": user_agent(contact)}
        self._limits = RequestLimits(
            requests_per_minute=60 * rate, attempts=attempts, total_wait=patience, first_wait=backoff
        )

    def answers(self, calls: Sequence[ApiCall[T]]) -> Iterator[tuple[int, T | None]]:
        """Make all calls, and yield (position, answer) when each answer arrives.

        An answer is None for an error code in `ApiCall.passes`. LmkbcError if calls failed for good. One or two
        failures are reported at the end. If the API refuses requests, or as many calls failed as run at once, it stops
        at once.
        """
        http = httpx2.AsyncClient(headers=self._headers, timeout=self._timeout, **connection(self._url))
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
            async with asyncio.timeout(self._deadline), http.stream("GET", self._url, params=params) as response:
                after = self._checked(response)
                reply = decode(await response.aread(), call.decoder)
            if reply.error is None:
                return call.read(reply)
            if reply.error.code in call.passes:
                return None
            raise self._refusal(reply.error, after)
        except TimeoutError:
            raise CallError(f"no whole reply in {self._deadline:g} s") from None
        except httpx2.RequestError as error:
            raise CallError(f"{type(error).__name__}: {error}{by_proxy(self._url)}") from None
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
            return CallError(error.code[:80], wait=after)
        return LmkbcError(f"{self._url} refused a request: {(error.info or error.code)[:200]}")


def user_agent(contact: str | None) -> str:
    """Return the User-Agent: the program and its operator, as Wikimedia's policy requires (meta: User-Agent policy)."""
    contact = " ".join((contact or os.environ.get(CONTACT, "")).split())
    if "@" not in contact and "://" not in contact:
        raise InputError(
            f"Wikidata wants to know who asks: give --contact, or set {CONTACT}, to your name and an e-mail address or "
            "page, as in 'Jane Doe, jane@example.org', or ask nothing: link with --search-table, make relations with "
            "--dump, audit with --known FILE"
        )
    if not contact.isascii():
        raise InputError(f"contact {contact!r} cannot be sent in a header: write it in ASCII")
    return f"lmkbc/{version('lmkbc')} ({contact}) httpx2/{httpx2.__version__}"
