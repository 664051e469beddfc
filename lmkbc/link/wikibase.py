"""Wikibase: the parts of its data model that linking reads, and calls of its API, checked when decoded.

Formats: https://doc.wikimedia.org/Wikibase/master/php/docs_topics_json.html, and
https://www.wikidata.org/w/api.php?action=help&modules=wbsearchentities and =wbgetentities. Bytes of another shape raise
ShapeError, so unchecked data is never cached, indexed or requested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

import msgspec

from lmkbc.link.hits import Hit
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
    """Property and value; `datavalue` is absent for "unknown value" and "no value", which `snaktype` names."""

    datavalue: DataValue[V] | None = None
    snaktype: str = ""


class Statement(msgspec.Struct, Generic[V], gc=False):
    """A claim with its rank. V: type of its value."""

    mainsnak: Snak[V]
    rank: str = "normal"


class Redirect(msgspec.Struct, gc=False, rename={"origin": "from"}):
    """The item that was asked for, of an entity into which it was merged."""

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
    redirects: Redirect | None = None
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
    """An entity that wbsearchentities found."""

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
