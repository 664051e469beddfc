"""Properties of Wikidata: labels, data types and constraints, from its API or from a dump.

Constraints are statements of P2302: https://www.wikidata.org/wiki/Help:Property_constraints_portal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from lmkbc.errors import InputError
from lmkbc.kinds.kind import Kind, kinds
from lmkbc.link.index_sources import LANGUAGES, entity_of, lines
from lmkbc.link.wikibase import (
    ApiCall,
    Empty,
    EntitiesReply,
    PropertyOrItem,
    ShapeError,
    Snak,
    Statement,
    WikibaseEntity,
    decode,
    entities,
    picked,
)
from lmkbc.link.wikidata import Client
from lmkbc.names import QID

PID = r"P[1-9][0-9]{0,8}"
"""Pattern of a property's id."""
ANY_ID = rf"{PID}|{QID}"
"""Pattern of the id of a property or an item."""
SUBJECT_TYPE, VALUE_TYPE = "Q21503250", "Q21510865"
SINGLE_VALUE = frozenset({"Q19474404", "Q52060874"})
"""Constraints "single value" and "single best value"."""
SYMMETRIC, INVERSE, DISTINCT = "Q21510862", "Q21510855", "Q21502410"
UNITS, INTEGER = "Q21514353", "Q52848401"
CLASS, PROPERTY, ITEM = "P2308", "P2306", "P2305"
"""Qualifiers of constraints."""


class _Value(msgspec.Struct, gc=False):
    """A value of a snak, as far as it is read: an entity's id."""

    id: str | None = None


class _Claim(Statement[_Value | str]):
    qualifiers: dict[str, list[Snak[_Value | str]]] | Empty = msgspec.field(default_factory=dict)


class _Claims(msgspec.Struct, gc=False):
    P2302: list[_Claim] = []


class WikidataEntity(WikibaseEntity[_Claims]):
    """A property or a class."""

    id: PropertyOrItem
    datatype: str = ""

    @property
    def label(self) -> str:
        """Return the label in English, or the one for every language; "" if it has none."""
        return next((term.value for term in picked(self.labels, LANGUAGES)), "")

    @property
    def description(self) -> str:
        """Return the description in English, or the one for every language; "" if it has none."""
        return next((term.value for term in picked(self.descriptions, LANGUAGES)), "")

    @property
    def names(self) -> tuple[str, ...]:
        """Return the English aliases."""
        return tuple(term.value for terms in picked(self.aliases, LANGUAGES[:1]) for term in terms)

    def constraints(self, *types: str) -> Iterator[_Claim]:
        """Yield the constraints of some types that are not deprecated."""
        claims = self.claims.P2302 if isinstance(self.claims, _Claims) else []
        yield from (claim for claim in claims if claim.rank != "deprecated" and _id(claim.mainsnak) in types)

    def constrained(self, constraint: str, qualifier: str) -> tuple[str, ...]:
        """Return the entities that a constraint's qualifier names, each once."""
        snaks = (picked(claim.qualifiers, [qualifier]) for claim in self.constraints(constraint))
        return tuple(dict.fromkeys(filter(None, (_id(snak) for held in snaks for group in held for snak in group))))

    @property
    def subjects(self) -> tuple[str, ...]:
        """Return the classes of subjects that the property allows."""
        return self.constrained(SUBJECT_TYPE, CLASS)

    @property
    def values(self) -> tuple[str, ...]:
        """Return the classes of objects that the property allows."""
        return self.constrained(VALUE_TYPE, CLASS)


def of_data_types() -> dict[str, Kind]:
    """Return data type -> kind of a relation. Values of other types, such as images, are no answers to questions."""
    return {data_type: kind for kind in reversed([*kinds().values()]) for data_type in kind.data_types}


Lookup = Callable[[Sequence[str]], Mapping[str, WikidataEntity]]
"""Function from ids to the entities that have them."""


_REPLY = msgspec.json.Decoder(EntitiesReply[WikidataEntity])
_LINE = msgspec.json.Decoder(WikidataEntity)
_ID = re.compile(rb'"id":\s*"([PQ][0-9]+)"')
_PROPS = "info|datatype|labels|descriptions|aliases|claims"


def of_client(client: Client) -> Lookup:
    """Return the lookup in Wikidata's API."""

    def call(ids: Sequence[str]) -> ApiCall[dict[str, WikidataEntity]]:
        return entities(ids, _REPLY, lambda entity: entity, props=_PROPS, languages="|".join(LANGUAGES))

    def lookup(ids: Sequence[str]) -> dict[str, WikidataEntity]:
        return {name: entity for part in client.entities(ids, call) for name, entity in part.items() if entity}

    return lookup


def of_dump(path: Path) -> Lookup:
    """Return the lookup in a JSON dump, which is read once for each call, up to the last entity that is asked for."""

    def lookup(ids: Sequence[str]) -> dict[str, WikidataEntity]:
        wanted, found = {*ids}, dict[str, WikidataEntity]()
        for line in lines(path) if wanted else ():
            first = _ID.search(line)
            if first is None or first[1].decode() not in wanted:
                continue
            try:
                entity = decode(entity_of(line), _LINE)
            except ShapeError as error:
                raise InputError(f"{path}: {first[1].decode()} cannot be read ({error}): get the dump again") from None
            found[entity.id] = entity
            if len(found) == len(wanted):
                break
        return found

    return lookup


def read(ids: Sequence[str], lookup: Lookup) -> list[WikidataEntity]:
    """Return properties in order. InputError for one that cannot be asked: unknown, merged, of another data type."""
    found = lookup(ids)
    types = of_data_types()
    return [_checked(name, found.get(name), types) for name in ids]


def check_ids(ids: Sequence[str]) -> list[str]:
    """Return ids of properties in capitals. InputError for a text that is none, and for one that is named twice."""
    names = [text.strip().upper() for text in ids]
    for text, name in zip(ids, names, strict=True):
        if not re.fullmatch(PID, name):
            raise InputError(f"{text[:40]!r} is no property of Wikidata: name one like P36, or NAME:KIND of your own")
        if names.count(name) > 1:
            raise InputError(f"{name} is named twice: a property gives one relation")
    return names


def _checked(name: str, entity: WikidataEntity | None, types: Mapping[str, Kind]) -> WikidataEntity:
    if entity is None or entity.missing is not msgspec.UNSET:
        raise InputError(f"Wikidata has no property {name}: look it up on https://www.wikidata.org/wiki/Special:Search")
    if entity.id != name:
        raise InputError(f"{name} was merged into {entity.id}: name {entity.id}")
    if entity.datatype not in types:
        raise InputError(
            f"{name} ({entity.label or 'no label'}) has values of the type {entity.datatype or 'unknown'!r}, which no "
            "question can ask for: name a property of items, numbers, dates or texts"
        )
    if not entity.label:
        raise InputError(f"{name} has no English label, so no question can be worded: write its relation by hand")
    return entity


def _id(snak: Snak[_Value | str]) -> str | None:
    """Return the id that a snak names; None for none, and for what is no id of Wikidata."""
    value = snak.datavalue.value if snak.datavalue else None
    given = value.id if isinstance(value, _Value) else None
    return given if re.fullmatch(ANY_ID, given or "") else None
