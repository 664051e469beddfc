"""The numbers that an answer means for a relation, in the relation's unit, as plain digits.

A range stands for its midpoint, since scorers compare one number within a tolerance; it is rounded down if only whole
numbers are possible. Amounts such as "5 ft 11 in" are added up. A number in the relation's own unit precedes one in
another unit of the same dimension, which is converted, and that precedes numbers without a unit. Numbers of other
units, shares in percent, step numbers and references do not count. Neither do years and dates, if another number
does. Remarks in brackets count only if nothing else does, or if they state the same amount in the relation's unit.

Numbers that are too large or too small for plain digits are ignored, and so are ranges that end in them.
`numerals` describes how ambiguous digits are read.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Decimal, InvalidOperation
from functools import partial
from itertools import compress

from lmkbc.answer.abstain import has_term, name_terms, stems, terms
from lmkbc.kinds.numerals import Numeral, has_decimal_comma, in_digits, in_other_words, in_words, readable, scale_at
from lmkbc.kinds.units import (
    LETTER,
    MINOR,
    converted,
    is_like_unit,
    is_money,
    named_at,
    unit_at,
    unit_before,
    unit_behind,
    unit_of,
)
from lmkbc.names import folded_key
from lmkbc.relation import Relation
from lmkbc.words import FORM, LONGEST_SENTENCE, WORDS

MOST_DIGITS = 15
"""Maximum number of digits before the decimal point."""
MOST_PLACES = 12
"""Last place after the point at which the first digit may stand."""
DIGITS = 40
"""Most digits before and after the decimal point that are kept."""
LONGEST = 20_000
"""Maximum number of characters that are read; later text is no answer."""
MOST_READ = 50
"""Maximum number of numbers of which the words beside them are read."""
SENTENCE = 8
"""More words than this make a text prose, whose numbers without a unit may mean anything."""
SAME = Decimal("0.05")
"""Greatest relative difference between an amount and the same amount in another unit, rounded."""
FOREIGN = ""
"""Unit of another dimension than the relation's."""
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:,\d{2,3})*,\d{3}(?:\.\d*)?(?:[eE][+-]?\d{1,3})?")
_PLAIN = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{0,11}[1-9])?")
"""A number as `plain` writes it, whose point is decimal in any language."""
_ANY_COUNTED = stems(*WORDS["any_counted"])
_LETTER_SCALES = {"k": 3, "m": 6, "b": 9}
_SHORT_SCALE = re.compile(rf"\s?([kmb])(?!{LETTER}|\^)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Found:
    """A number with its scale and unit, in the positions of the text that it takes up.

    unit: None without one, and FOREIGN for one of another dimension. is_own: whether it is the relation's. total: the
    amount in the relation's unit. is_side: whether it is one of several lengths, as in "80 x 60 cm".
    """

    value: Decimal
    start: int
    end: int
    scale: Decimal | None
    unit: str | None
    is_own: bool
    is_date: bool
    total: Decimal
    is_side: bool = False


def read_numbers(text: str, relation: Relation) -> list[str]:
    """Return the numbers that a text gives for a relation, in its unit, as plain digits ("1250").

    In prose, a number without the unit counts only if it is the only one.
    """
    if _PLAIN.fullmatch(text) and not (relation.shape.integer and "." in text):
        return [plain(Decimal(text))]
    totals = [number.total for number in _meant(text, relation)]
    return list(dict.fromkeys(plain(total) for total in totals if _is_writable(total)))


def plain(value: Decimal) -> str:
    """Return a number as digits, without exponent or trailing zeros."""
    text = f"{value:f}" if value else "0"
    return text.rstrip("0").rstrip(".") if "." in text else text


def last_place(text: str) -> str:
    """Return the value of a number's last digit, as text: "0.01" for "1,284.50"."""
    return str(Decimal(1).scaleb(int(Decimal(text.replace(",", "").strip()).as_tuple().exponent)))


def decimal(text: str) -> str | None:
    """Return a number in plain digits, without thousands commas; None for other texts, or too many digits."""
    if len(text) > 2 * DIGITS or ("," in text and not _GROUPED.fullmatch(text.strip())):
        return None
    try:
        value = Decimal(text.replace(",", "").strip())
    except InvalidOperation:
        return None
    if not value.is_finite() or abs(value.adjusted()) > DIGITS:
        return None
    return plain(value)


def _is_writable(value: Decimal) -> bool:
    return not value or -MOST_PLACES <= value.adjusted() < MOST_DIGITS


def _meant(text: str, relation: Relation) -> list[_Found]:
    """Return the numbers that an answer means, of any size."""
    if is_money(unit_of(relation.unit)):
        text = FORM.coins_alone.sub(lambda coins: f"0.{int(coins[1]):02} ", text)
    text = FORM.changed.sub(r"\1 ", FORM.numbered.sub(" ", readable(text[:LONGEST])[:LONGEST]))
    reader = _Reader(relation, has_decimal_comma(text, relation))
    bare = FORM.number_aside.sub(partial(_unbracketed, reader.known), text)
    found = [*reader.read(bare)]
    numbers = [number for number in found if number.unit != FOREIGN]
    if not any(number.is_own for number in numbers) and bare != text:
        whole = [number for number in reader.read(text) if number.unit != FOREIGN]
        same = [one for one in whole if one.is_own and any(_is_same(one, other) for other in numbers[:MOST_READ])]
        nouns = all(re.match(r"\s[a-z]{3}", bare[number.end :]) for number in numbers) and not unit_of(relation.unit)
        counted = [one for one in whole if one.is_own] if nouns else []  # as in "6 seasons (121 episodes)"
        if same or counted or not numbers:
            bare, numbers = text, same or counted or whole
    if measured := [number for number in numbers if number.unit is not None]:
        own = [number for number in measured if number.is_own]
        unlike = [
            one for at, one in enumerate(measured) if not any(_is_same(one, x) for x in measured[: min(at, MOST_READ)])
        ]
        return _named(own or unlike, bare, reader.known)
    numbers = [number for number in numbers if not number.is_side]
    if len(numbers) > 1 or relation.unit is not None:
        dated = [number for number in numbers if not number.is_date]
        numbers = dated or [
            one for one in numbers if relation.unit is None or one.scale is not None
        ]  # years as a range
    if len(numbers) > 1 and (
        stated := [number for number in numbers[:MOST_READ] if _is_stated(number, bare, terms(relation))]
    ):
        return (
            [max(stated, key=lambda one: _is_stated(one, bare, reader.known))] if relation.has_one_object() else stated
        )
    others = len(numbers) if unit_of(relation.unit) is None else len(found)
    if numbers and others > 1 and len(bare.split()) > SENTENCE + others:
        return []
    return numbers


def _is_stated(number: _Found, text: str, known: frozenset[str]) -> bool:
    """Return whether a term stands beside a number, as in "a capacity of 5,000" and "5,000 seats"."""
    before = text[max(0, number.start - 40) : number.start].split()[-3:]
    beside = folded_key(" ".join([*before, *text[number.end : number.end + 40].split()[:1]]))
    return has_term(beside, known)


def _named(numbers: list[_Found], text: str, known: frozenset[str]) -> list[_Found]:
    """Return the numbers in whose part of a text the relation is named, as in "2 cm high and 3 cm wide".

    If there are none, all count but the sides of a thing.
    """
    ends = [0, *(end.end() for end in FORM.measure_end.finditer(text)), len(text)]
    places = [bisect_right(ends, number.start, hi=len(ends) - 1) for number in numbers]
    parts = [text[ends[place - 1] : ends[place]] if len(text) <= LONGEST_SENTENCE else "" for place in places]
    named = [has_term(folded_key(part), known) for part in parts]
    return [*compress(numbers, named)] or [number for number in numbers if not number.is_side]


def _unbracketed(known: frozenset[str], aside: re.Match[str]) -> str:
    """Return what stays of an aside: a unit, as in "28 (sq mi)", or a name of the relation, as in "28 cm (width)"."""
    inner = aside[0][1:-1]
    unit = unit_at(inner, 0) if inner[:1].isalpha() else None
    is_name = inner.isalpha() and has_term(folded_key(inner), known)
    return f" {inner} " if is_name or (unit and unit.end == len(inner)) else " "


def _is_same(one: _Found, other: _Found) -> bool:
    """Return whether two numbers state the same amount in different units."""
    return one.unit != other.unit and abs(one.total - other.total) <= SAME * max(abs(one.total), abs(other.total))


class _Reader:
    """Reads the numbers of a text for one relation. comma: whether a comma is the decimal mark of its language."""

    def __init__(self, relation: Relation, comma: bool) -> None:
        self._mark = "," if comma else "."
        self._noun, self._own, self._whole = relation.unit, unit_of(relation.unit), relation.shape.integer
        noun = re.escape((relation.unit or "").removesuffix("s"))
        money = named_at(f" {relation.unit}", 0) if self._noun and not self._own else None
        self._few = 0 if money and is_money(money.units[0]) else 3  # words, as of "about 900 souls": any noun counts
        letter = "(?!)" if self._few else rf"(?<=\s){noun[:1]}(?!{LETTER})"  # "8 M" of "Mark"
        self._counted, self.known = re.compile(rf"[-\s]{{0,3}}(?:(?i:{noun})|{letter})"), name_terms(relation)
        self._terms = self.known if self._own else terms(relation) | _ANY_COUNTED
        self._speaks = bool(relation.unit and relation.language)  # else unit and reply may differ in their language
        self._in_money = is_money(self._own)
        self._negative = relation.shape.minimum is None or relation.shape.minimum < 0

    def read(self, text: str) -> Iterator[_Found]:
        """Yield the numbers in order of position, those of foreign units included, and ranges as their midpoints."""
        dates = [match.span() for match in FORM.date_in_text.finditer(text)]
        last: _Found | None = None
        end = place = 0
        numerals = [*in_digits(text, negative=self._negative), *in_words(text)] or [*in_other_words(text)]
        for numeral in sorted(numerals, key=lambda numeral: numeral.start):
            if numeral.start < end:  # the square of "km 2", or the second word of a numeral
                continue
            while place < len(dates) and dates[place][1] <= numeral.start:
                place += 1
            is_date = place < len(dates) and dates[place][0] <= numeral.start
            number = self._measured(numeral, text, is_date)
            end = number.end
            if last is not None and self._is_range(last, number, text):
                last = self._midpoint(last, number)
            elif last is not None and (whole := self._with_part(last, number, text)):
                last = whole
            else:
                if last is not None:
                    is_side = (
                        not last.is_date
                        and (self._own or not last.unit)
                        and bool(FORM.sides.fullmatch(text[last.end : number.start]))
                    )
                    yield replace(last, is_side=last.is_side or is_side)
                    number = replace(number, is_side=is_side)
                last = number
        if last is not None:
            yield last

    def _measured(self, numeral: Numeral, text: str, is_date: bool) -> _Found:
        """Return a numeral with the scale and the unit beside it."""
        value, start, end, words, mark = numeral
        if self._negative and (minus := FORM.minus.search(text, max(0, start - 12), start)):
            value, start = -value, minus.start()
        scale, end = (None, end) if words else scale_at(text, end)
        groups = self._whole or self._is_money(text, start, end)  # of three digits, where no factor follows
        unit, after = self._unit(text, end)
        if scale is None and unit is None and not words and (letter := _SHORT_SCALE.match(text, end)):
            further, behind = self._unit(text, letter.end())
            if further or self._is_scale(letter, text, start):
                scale, unit, after = Decimal(1).scaleb(_LETTER_SCALES[letter[1].lower()]), further, behind
            elif letter[1] == "m" and self._noun:
                unit = FOREIGN
        if mark == self._mark and not (groups and scale is None):
            value = value.scaleb(-3)
        if unit is None and (before := unit_before(text, start)):
            unit = self._fitting(before.units, before.sure)
        if unit is None and (scale is None or self._in_money) and self._counts(text, start, after):
            unit = FOREIGN
        if (per := FORM.per.match(text, after)) and unit_at(text, per.end()):
            unit = FOREIGN
        if self._negative and (below := FORM.below_zero.match(text, after)) and value > 0:
            value, after = -value, below.end()
        found = _Found(value, start, after, scale, unit, False, is_date and unit is None and scale is None, value)
        return self._totalled(found)

    def _is_money(self, text: str, start: int, end: int) -> bool:
        """Return whether a number is an amount of money, which has at most two decimal places."""
        spelt = unit_at(text, end), unit_before(text, start)
        return self._in_money or any(is_money(one.units[0]) for one in spelt if one)

    def _is_scale(self, letter: re.Match[str], text: str, start: int) -> bool:
        """Return whether a letter behind a number multiplies it: "m" may be metres, as in "105m x 68m"."""
        attached = letter[0] == letter[1]
        if letter[1] != "m":  # "63.15 K" of a relation without a unit may be kelvins
            beside = self._noun is not None and (not self._in_money or unit_before(text, start) is not None)
            return attached or (letter[1] != "b" and beside)
        if (
            (self._own and not self._in_money)
            or FORM.across.search(text[max(0, start - 14) : start])
            or FORM.by_length.match(text, letter.end())
        ):
            return False
        return attached or bool(FORM.people.match(text, letter.end()))

    def _counts(self, text: str, start: int, end: int) -> bool:
        """Return whether a number counts another thing, as in "7 apples", or another currency, as in "500 fl.".

        What a relation counts may be named by a form of its unit, a compound or a part of it, and by its terms.
        """
        noun = (
            FORM.counted_noun.match(text, end)
            if self._own or (self._speaks and len(text.split()) > self._few)
            else None
        )
        key, unit = folded_key(noun[1]) if noun else "", folded_key(self._noun or "")
        starts = (one[: max(4, len(one) - 2)] in other for one, other in ((key, unit), (unit, key)))
        is_form = is_like_unit(key) if self._own else any(starts)
        around = FORM.other_money.match(text, end) or FORM.money_before.search(text[max(0, start - 8) : start])
        return bool((self._in_money and around) or (noun and not is_form and not has_term(key, self._terms)))

    def _unit(self, text: str, start: int) -> tuple[str | None, int]:
        """Return the unit behind a number, and the position behind it."""
        if self._noun and not self._own and (named := self._counted.match(text, start)):
            return self._noun, named.end()
        found = unit_behind(text, start, self._own)
        if found and (unit := self._fitting(found.units, found.sure)) is not None:
            return unit, found.end
        return None, start

    def _fitting(self, units: tuple[str, ...], sure: int) -> str | None:
        """Return which of the units that a spelling may mean fits the relation."""
        if self._noun is None:
            return None
        own = (unit for unit in units if unit == self._own)
        fits = (unit for unit in units if self._own and converted(Decimal(0), unit, self._own) is not None)
        is_foreign = sure == 2 or (sure and self._own and not self._in_money) or (is_money(units[0]) and self._in_money)
        return next(own, next(fits, FOREIGN if is_foreign else None))

    def _totalled(self, found: _Found) -> _Found:
        total = found.value * (found.scale or 1)
        own = bool(found.unit) and found.unit == (self._own or self._noun)
        if found.unit and not own and self._own:
            total = converted(total, found.unit, self._own) or Decimal(0)
            total = total.to_integral_value() if self._whole else total
        return replace(found, is_own=own, total=total)

    def _is_range(self, low: _Found, high: _Found, text: str) -> bool:
        link = text[low.end : high.start]
        if len(link) > 20 or (low.is_date and not high.is_date and high.unit is None) or not FORM.range.fullmatch(link):
            return False
        if FORM.range_and.fullmatch(link) and not FORM.between_ends.search(text[max(0, low.start - 20) : low.start]):
            return False
        start = self._shared(low, high).total
        return start < high.total or (self._negative and min(start, high.total) < 0)

    def _shared(self, low: _Found, high: _Found) -> _Found:
        """Return the lower end of a range with the scale and unit that stand only behind the upper end."""
        scale = low.scale if low.scale is not None or low.value >= 1000 else high.scale
        return self._totalled(replace(low, scale=scale, unit=high.unit if low.unit is None else low.unit))

    def _midpoint(self, low: _Found, high: _Found) -> _Found:
        ends = self._shared(low, high).total, high.total
        middle = next((end for end in ends if not _is_writable(end)), (ends[0] + ends[1]) / 2)
        whole = middle.to_integral_value(ROUND_FLOOR) if self._whole else middle
        return replace(
            high, value=whole, start=low.start, scale=Decimal(1), is_date=low.is_date and high.is_date, total=whole
        )

    def _with_part(self, whole: _Found, part: _Found, text: str) -> _Found | None:
        """Return the sum of two numbers if the second continues the first, as in "5 ft 11 in" and "1 m 80".

        Its unit is FOREIGN if it may mean two amounts, as "1 m 5".
        """
        if not self._own and FORM.sons.match(text, whole.start):
            return self._totalled(replace(part, start=whole.start, value=whole.value + part.value, unit=None))
        written = text[part.start : part.end].replace("-", "")
        in_cents = is_money(whole.unit) and part.unit in (None, whole.unit) and part.value >= 1 and written.isalpha()
        is_bare = in_cents or (part.unit is None and not part.is_date)
        link = (FORM.bare_part if is_bare else FORM.part_of_amount).fullmatch(text[whole.end : part.start])
        if not (whole.unit and self._own and link) or whole.scale:
            return None
        smaller = whole.unit if in_cents or part.value < 1 else MINOR.get(whole.unit)
        unit = (smaller if is_bare else part.unit) or ""
        each = Decimal(100) if in_cents else converted(Decimal(1), whole.unit, unit)
        if (
            (whole.unit == part.unit and not in_cents)
            or not each
            or converted(Decimal(0), whole.unit, unit)
            or not 0 < part.value < each
            or whole.value != whole.value.to_integral_value()
        ):
            return None
        is_unsure = is_bare and written.isdigit() and len(written) + 1 < len(f"{each:.0f}")
        made = replace(
            whole,
            end=part.end,
            value=whole.value * each + part.value,
            scale=Decimal("0.01") if in_cents else None,
            unit=FOREIGN if is_unsure else unit,
        )
        return replace(self._totalled(made), is_own=whole.is_own or part.is_own)
