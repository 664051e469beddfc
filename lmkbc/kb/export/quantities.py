"""Numbers with units: those of facts in the unit of Wikidata's item, and known ones in the unit of facts."""

from __future__ import annotations

import re
from decimal import Decimal

from lmkbc.answer.units import converted, item_of_unit, unit_at, unit_of, unit_of_item
from lmkbc.errors import InputError
from lmkbc.kb.build.facts import decimal
from lmkbc.kb.build.knowledge import FactRow
from lmkbc.kb.build.manifest import About

_NUMBER = re.compile(r"([+-]?\d[\d.,]*)(?:U([1-9]\d*))?\s*")


def quantity(fact: FactRow) -> tuple[str, str | None] | None:
    """Return a fact's number in the unit of its relation's item, and this item; None if the fact has no number.

    InputError if the relation's unit and the item of its unit have different dimensions.
    """
    if fact.literal is None or fact.about.kind != "number":
        return None
    unit, item = unit_of(fact.about.unit), fact.about.unit_id
    if unit is None or (into := unit_of_item(item)) is None:
        return fact.literal, item or item_of_unit(unit)
    made = converted(Decimal(fact.literal), unit, into)
    if made is None:
        raise InputError(
            f"relation {fact.relation}: its unit {fact.about.unit!r} cannot be converted into its unit_id {item}; "
            "correct one of them in the relation, and build again"
        )
    return str(decimal(f"{made:f}")), item


def has_unit(about: About) -> bool:
    """Return whether a relation's numbers have a unit that can be converted."""
    return unit_of(about.unit) is not None


def known_number(value: str, item: str | None, about: About) -> tuple[str | None, bool]:
    """Return a known number in the unit of a relation's facts, and whether it came with a unit.

    value: a number, perhaps with a unit: "100", "10000U35852", "10,000 ha". item: Wikidata's item of the unit. Without
    a unit, a number is taken to have that of the facts. It is None if its unit is not known or has another dimension.
    An item that is no unit of measure, such as "seat", counts things.
    """
    found = _NUMBER.match(value)
    digits = decimal(found[1]) if found else None
    if found is None or digits is None:
        return None, False
    own, unit = unit_of(about.unit), unit_of_item(item or (found[2] and f"Q{found[2]}"))
    if found.end() < len(value):
        spelt = unit_at(value, found.end())
        unit = spelt.units[0] if spelt and spelt.end == len(value) else None
    elif not (item or found[2]) or (own is None and unit is None):
        return digits, False
    made = converted(Decimal(digits), unit, own) if unit and own else None
    return None if made is None else decimal(f"{made:f}"), True
