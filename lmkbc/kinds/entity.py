"""Entities: things with names, which are linked to items of Wikidata."""

from __future__ import annotations

from lmkbc.kinds.kind import Described, Kind, KnownValue
from lmkbc.kinds.numbers import decimal
from lmkbc.names import as_qid, name_key
from lmkbc.relation import ANYTHING


class EntityKind(Kind):
    """Things with names."""

    name = "entity"
    is_entity = is_parted = True
    data_types = ("wikibase-item",)
    type = ANYTHING
    form = ""

    def known(self, text: str, unit: str | None, about: Described) -> KnownValue | None:
        """Return an item's QID; a text stands for a name."""
        return KnownValue(frozenset({object_key(text)}))


def object_key(text: str) -> str:
    """Return the key of a text that is a QID, a number or a name."""
    return as_qid(text) or decimal(text) or name_key(text)


ENTITY = EntityKind()
