"""The parts of Wikibase's data model that linking reads from dumps and API replies, checked when decoded.

Format: https://doc.wikimedia.org/Wikibase/master/php/docs_topics_json.html. Bytes of another shape raise ShapeError, so
unchecked data is never cached, indexed or requested.
"""

from __future__ import annotations

from typing import Annotated, TypeVar

import msgspec

from lmkbc.names import QID

T = TypeVar("T")
Qid = Annotated[str, msgspec.Meta(pattern=rf"\A{QID}\Z")]
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
