"""Wikibase's data model in dumps and API replies: the parts that linking reads, checked as they are decoded.

Format: https://doc.wikimedia.org/Wikibase/master/php/docs_topics_json.html. Bytes of another shape are a ShapeError,
never a value, so nothing unchecked is cached, indexed or asked for.
"""

from __future__ import annotations

from typing import Annotated, TypeVar

import msgspec

from lmkbc.names import QID

T = TypeVar("T")
Qid = Annotated[str, msgspec.Meta(pattern=rf"\A{QID}\Z")]
Text = Annotated[str, msgspec.Meta(max_length=10_000)]
"""A label, an alias or a description: Wikidata's hold 250 characters, a mirror's may hold more, but no book."""
Empty = Annotated[list[None], msgspec.Meta(max_length=0)]
"""Empty map, as PHP writes it."""


class ShapeError(ValueError):
    """Bytes that are not what they should be; its text says why."""


class Term(msgspec.Struct, gc=False):
    """A label, a description or an alias in one language."""

    value: Text


class EntityId(msgspec.Struct, gc=False):
    """The value of a statement about items."""

    id: Qid | None = None  # old dumps hold a number instead


class DataValue(msgspec.Struct, gc=False):
    """Value of a snak."""

    value: EntityId


class Snak(msgspec.Struct, gc=False):
    """Property and value; `datavalue` is absent for "unknown value" and "no value"."""

    datavalue: DataValue | None = None


class Statement(msgspec.Struct, gc=False):
    """A claim with its rank."""

    mainsnak: Snak
    rank: str = "normal"


def items(statements: list[Statement]) -> tuple[str, ...]:
    """Return the items that statements name, each once, without the deprecated."""
    values = (s.mainsnak.datavalue.value.id for s in statements if s.mainsnak.datavalue and s.rank != "deprecated")
    return tuple(dict.fromkeys(value for value in values if value))


def decode(raw: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """Decode one JSON value of the decoder's type. ShapeError for anything else, however deeply it is nested."""
    try:
        return decoder.decode(raw)
    except RecursionError:
        raise ShapeError("nested too deeply") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ShapeError(str(error)) from None
