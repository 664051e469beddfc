"""Numbers, with or without a unit, in the unit of their relation as plain digits."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import lru_cache
from typing import Any, ClassVar

from lmkbc.errors import InputError
from lmkbc.kinds.kind import WITH_COMMAS, Described, Exported, Kind, KnownValue, LeftOutError, Match, Stated
from lmkbc.kinds.numbers import decimal, last_place, plain, read_numbers
from lmkbc.kinds.numerals import has_decimal_comma, scale_at
from lmkbc.kinds.units import FEWEST_DIGITS, converted, item_of_unit, unit_behind, unit_in, unit_of, unit_of_item
from lmkbc.names import WIKIDATA_ITEM, folded_key
from lmkbc.relation import EntityType, Relation
from lmkbc.words import FORM

NO_UNIT = "Q199"
"""Wikidata's item for the number one, used as the unit of counts."""
_LINE = re.compile(r"-?\d[\d,]{0,40}(?:\.\d{1,40})?")
_GIVEN = re.compile(r"([+-]?(?:\d{1,3}(?:,\d{2,3})*,\d{3}|\d{1,40})(?:\.\d{1,40})?(?:[eE][+-]?\d{1,2})?)\s?")
_ABOUT = re.compile(rf"^(?:{FORM.date_circa.pattern})(?=[^\W\d]{{0,4}}\s?[-+\d])", re.IGNORECASE)
"""A word for an approximate number, as for a date; what stands between is a currency."""
_MARKED = re.compile(r"([+-]?\d{1,3}(?:[.,'’\s]\d{3})*(?:[.,]\d+)?)(?![.,\d])(.*)")
"""A number that may have separators of thousands or a decimal mark, and what stands behind it."""
_KNOWN = re.compile(r"([+-]?\d[\d.,]*)(?:U([1-9]\d*))?\s*")
_PLACES = re.compile(r"-?[0-9]{1,15}\.[0-9]{1,12}")
_RDF = re.compile(r"[+-]?(?:[0-9]{1,127}\.?[0-9]{0,127}|\.[0-9]{1,127})(?:[eE][+-]?[0-9]{1,2})?")
"""Number of RDF, as long as Wikidata allows one. A few bytes of another one, as 1E+100000000, are gigabytes."""


_WIDE = Context(prec=1000)
"""Context in which any number that is read can be rounded to the places of another one."""


@dataclass(frozen=True, slots=True)
class _Bounded:
    """A number between its bounds, in the unit of the facts. is_converted: whether it was in another one."""

    value: Decimal
    low: Decimal
    high: Decimal
    is_converted: bool = False


class Number(Kind):
    """Numbers. The greater one of two tolerances of the relation holds when they are compared."""

    name = "number"
    has_values = is_numeric = is_parted = one_object = has_unit = True
    fields = frozenset("number count amount total quantity".split())
    example = "digits, as in '74.36'"
    schema: ClassVar = {"type": "number"}
    data_types = ("quantity",)
    type = EntityType("number", "Q11563")
    shape = WITH_COMMAS
    form = ", as one plain number{within} without thousands separators."
    hint = ", its unit (as in unit='°C')"

    def read(self, text: str, relation: Relation) -> list[str]:
        """Return the numbers that a text gives, in the relation's unit."""
        return read_numbers(text, relation)

    def in_line(self, line: str, relation: Relation) -> list[str]:
        """Return the first number of a line."""
        number = _LINE.search(line)
        return [plain(Decimal(number[0].replace(",", "")))] if number else []

    def joined(self, fields: Sequence[tuple[str, str]]) -> tuple[int, str] | None:
        """Return the numbers whose keys have units, as {"km2": 7, "sq_mi": 2.7}, as one text: "7 km2 (2.7 sq mi)"."""
        found = [
            ("total" not in key, place, f"{text} {unit}")
            for place, (key, text) in enumerate(fields)
            if any(map(str.isdigit, text)) and (unit := unit_in(key))
        ]
        if not found:
            return None
        (_, place, first), *rest = sorted(found)
        return place, " ".join([first, *(f"({text})" for _, _, text in rest)])

    def size(self, value: str) -> str | int | None:
        """Return the number itself."""
        return value

    def meaning(self, text: str, relation: Relation) -> Hashable:
        """Return the number in the relation's unit. Its commas and points mean what they do in a reply."""
        text = _ABOUT.sub("", f"{text.strip()} ") if _ABOUT.match(text.strip()) else text.strip()
        text = FORM.no_coins.sub("", FORM.price_before.sub(r"\2 \1", text))
        marked = _MARKED.fullmatch(text)  # what stands behind a number shows that it is no number in the form of ours
        end = scale_at(marked[2], 0)[1] if marked else 0
        digits = read_numbers(f"{marked[1]}{marked[2][:end] or (marked[2][:1] and ' ')}", relation) if marked else []
        return _amount(f"{digits[0]}{marked[2][end:]}" if marked and digits else text, relation.unit)

    def unread(self, text: str, about: Described) -> str:
        """Return the same; of digits and letters, that these are no unit that can be converted."""
        if not about.unit or not re.match(r"\W*\d.*[^\W\d]", text):
            return super().unread(text, about)
        return f"{text!r} is not in {about.unit}, nor in a unit that is converted; write it in that, as {self.example}"

    def as_kept(self, text: str, relation: Relation) -> str:
        """Return plain digits in the relation's unit."""
        value = self.meaning(text, relation)
        return plain(value) if isinstance(value, Decimal) else text

    def said(self, text: str, relation: Relation) -> str:
        """Return a number with the decimal mark of the language, by which the reply is read."""
        return text.replace(".", ",") if has_decimal_comma("", relation) else text

    def is_same(self, given: Any, true: Any, relation: Relation, *, coarser: bool) -> bool:
        """Return whether a number is within the relation's tolerance."""
        if given is None or true is None:
            return False
        relative, absolute = Decimal(str(relation.tolerance)), Decimal(str(relation.absolute_tolerance))
        return bool(abs(given - true) <= max(relative * abs(true), absolute))

    def votes(self, texts: Sequence[str]) -> Mapping[str, str]:
        """Return number with places -> the only converted one that it rounds: 22.2 for 22.22222, which was 72 °F."""
        found = [text for text in texts if _PLACES.fullmatch(text)]
        near = {text: [other for other in found if _rounds(other, text)] for text in found}
        return {text: others[0] for text, others in near.items() if len(others) == 1 and not near[others[0]]}

    def literal(self, texts: Sequence[str]) -> tuple[str | None, str | None]:
        """Return the plain digits of the first text that is a number, and the value of their last one."""
        stated = next((text for text in texts if decimal(text) is not None), None)
        return (None, None) if stated is None else (decimal(stated), decimal(last_place(stated)))

    def exported(self, value: str | None, about: Described) -> Exported:
        """Return the number in the unit of the relation's item. InputError if this has another dimension."""
        if value is None:
            raise LeftOutError("no readable number")
        unit, item, named = unit_of(about.unit), about.unit_id, about.unit
        if unit is None or (into := unit_of_item(item)) is None:
            item = item or item_of_unit(unit)
        else:
            made = converted(Decimal(value), unit, into)
            if made is None:
                raise InputError(
                    f"its unit {about.unit!r} cannot be converted into its unit_id {item}; correct one of them in the "
                    "relation, and build again"
                )
            value, named = plain(made), about.unit if into == unit else into
        amount = value if value.startswith("-") else f"+{value}"
        address = f"{WIKIDATA_ITEM}{item}" if item else "1"
        of_node = [
            ("quantityAmount", amount, "decimal"),
            ("quantityUnit", f"{WIKIDATA_ITEM}{item or NO_UNIT}", "iri"),
        ]
        return Exported(
            value,
            "decimal",
            ("quantity", {"type": "quantity", "value": {"amount": amount, "unit": address}}),
            value + (f"U{item[1:]}" if item else ""),
            unit=named,
            unit_id=item,
            node=("QuantityValue", of_node),
            node_key=f"{value} {item}",
        )

    def known(self, stated: Stated, about: Described) -> KnownValue | None:
        """Return a known number with its bounds in the unit of a relation's facts: "100", "10000U35852", "10,000 ha".

        Without a unit, it is taken to have that of the facts. It is None if its unit is not known or has another
        dimension. An item that is no unit of measure, such as "seat", counts things.
        """
        text = decimal(stated.text) or stated.text
        match = _KNOWN.match(text)
        digits = decimal(match[1]) if match else None
        if match is None or digits is None:
            return None
        low, high = (decimal(bound) or digits for bound in stated.bounds or (digits, digits))
        item = stated.unit or (match[2] and f"Q{match[2]}")
        wanted, given = unit_of(about.unit), unit_of_item(item)
        if match.end() < len(text):
            spelt = unit_behind(text, match.end(), wanted)
            given = spelt.units[0] if spelt and spelt.end == len(text) else None
        elif not item or (wanted is None and given is None):
            return KnownValue(digits, _Bounded(Decimal(digits), Decimal(low), Decimal(high)))
        if not given or not wanted:
            return None
        value, *ends = (converted(Decimal(number), given, wanted) for number in (digits, low, high))
        if value is None or decimal(f"{value:f}") is None:
            return None
        least, most = (value if end is None else end for end in ends)
        return KnownValue(plain(value), _Bounded(value, least, most, value != Decimal(digits)), True)

    def compare(self, own: str, known: KnownValue, about: Described) -> Match:
        """Return whether a number is within the relation's tolerance of a known one, or within its bounds.

        A converted number is also the same if it is the fact's when it is rounded to as many places: 39 square miles
        are 101 km2.
        """
        number, true = Decimal(own), known.value
        relative, absolute = Decimal(str(about.tolerance)), Decimal(str(about.absolute_tolerance))
        is_near = abs(number - true.value) <= max(relative * abs(true.value), absolute)
        is_same = (
            is_near
            or true.low <= number <= true.high
            or (true.is_converted and true.value.quantize(Decimal(last_place(own)), context=_WIDE) == number)
        )
        return Match.SAME if is_same else Match.CONTRADICTS

    def gold(self, text: str, row: Mapping[str, str], relation: Relation) -> str:
        """Return a number of a query service in the unit of the relation."""
        if not _RDF.fullmatch(text):
            raise LeftOutError("a value that is no number")
        value = Decimal(text)
        own, item = unit_of(relation.unit), row.get("unit", "").rpartition("/")[2]
        if own and item != relation.unit_id:
            source = unit_of_item(item)
            made = converted(value, source, own) if source else None
            if made is None:
                raise LeftOutError("a number without a unit" if item == NO_UNIT else "a number in another unit")
            value = made
        return plain(value)


def _rounds(digits: str, rounded: str) -> bool:
    """Return whether a number with as many digits as a converted one is another one when it is rounded."""
    few, many = (len(text.partition(".")[2]) for text in (rounded, digits))
    is_converted = len(Decimal(digits).as_tuple().digits) >= FEWEST_DIGITS
    return is_converted and few < many and round(Decimal(digits), few) == Decimal(rounded)


@lru_cache(maxsize=1 << 14)
def _amount(text: str, unit: str | None) -> Decimal | None:
    """Return the number in a text, converted into a unit if the text names another one; None if there is none."""
    text = text.strip().replace("\u2212", "-")
    if (match := _GIVEN.match(text)) is None:
        return None
    value, behind = Decimal(match[1].replace(",", "")), text[match.end() :]
    if not behind or folded_key(behind) == folded_key(unit or ""):
        return value
    own, stated = unit_of(unit), unit_behind(behind, 0, unit_of(unit))
    if own is None or stated is None or stated.end < len(behind):
        return None
    amounts = (converted(value, unit, own) for unit in stated.units)
    return next((amount for amount in amounts if amount is not None), None)


NUMBER = Number()
