"""Numbers in a model's text: digits with separators, scales, units, ranges and number words, as plain digits.

Ambiguous texts are read as follows. A comma, apostrophe or space before exactly three digits groups thousands. A single
comma before one or two digits is a decimal comma. A dot is a decimal point, with two exceptions. Two dots before groups
of three digits group thousands. So does one dot before three digits if only whole numbers are possible.

A range stands for its midpoint, since scorers compare one number within a tolerance; it is rounded down if only whole
numbers are possible. A number with its unit precedes numbers without one, and other units of area are converted.
Numbers that are too large or too small for plain digits are ignored, and so are ranges that end in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Decimal

from lmkbc.relation import Relation

MOST_DIGITS = 15
"""Maximum number of digits before the decimal point."""
MOST_PLACES = 12
"""Last place after the point at which the first digit may stand."""
MOST_POWER = 1000
"""Powers of ten are cut to this: larger ones are unwritable anyway."""
LONGEST = 20_000
"""Maximum number of characters that are read; later text is no answer."""
SENTENCE = 8
"""More words than this make a text prose, whose numbers without a unit may mean anything."""

_SPACE = "[ \u00a0\u202f\u2009]"
_GROUP = f"(?:[,'’]|{_SPACE})"
_RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_LOWERED = str.maketrans(_RAISED + "⁺⁻−", "0123456789+--")
_SEPARATORS = str.maketrans("٬٫", ",.")
"""Arabic separators -> comma and dot."""
_NUMBER = re.compile(
    rf"(?<![\w.,])(?P<sign>[-−](?=\d))?"
    rf"(?P<whole>\d{{1,3}}(?:\.\d{{3}}){{2,}}(?!\d)|\d{{1,3}}(?:,\d\d)*(?:{_GROUP}\d{{3}}(?!\d)){{1,6}}|\d+(?!\d))(?!(?:st|nd|rd|th|s)\b)"
    rf"(?P<part>\.\d{{1,40}}|,\d{{1,2}}(?!\d))?"
    rf"(?:(?:e| ?[×x*·⋅] ?10(?:\^|\*\*))(?P<power>[+−-]?\d+)\b| ?[×x*·⋅] ?10(?P<raised>[⁺⁻]?[{_RAISED}]+))?",
    re.IGNORECASE,
)
_SCALES = {"hundred": 2, "thousand": 3, "k": 3, "million": 6, "mn": 6, "billion": 9, "bn": 9, "trillion": 12}
_SCALE = re.compile(rf"[-\s]{{0,3}}({'|'.join(_SCALES)})\b", re.IGNORECASE)
_SQUARE = r"(?:{0} ?(?:2|²|\^2|squared)|(?:sq|square)\.? ?{0})(?!\w)"
_AREAS = {
    _SQUARE.format("(?:kms?|kilomet(?:er|re)s?)"): Decimal(1),
    _SQUARE.format("(?:mi|miles?)"): Decimal("2.589988"),
    _SQUARE.format("(?:m|met(?:er|re)s?)"): Decimal("0.000001"),
    r"(?:ha|hectares?)\b": Decimal("0.01"),
    r"acres?\b": Decimal("0.004046856"),
}
"""Units of area -> square kilometres (international mile and acre)."""
_AREA_UNITS = [(re.compile(rf"[-\s]{{0,3}}{unit}", re.IGNORECASE), factor) for unit, factor in _AREAS.items()]
_RANGE = re.compile(r"\s{0,3}(?:-|–|—|to|and)\s{0,3}(?:about |around |~)?", re.IGNORECASE)
_BETWEEN = re.compile(r"between (?:about |around |~)?$", re.IGNORECASE)
_DATE = re.compile(r"\b(?:in|since|by|as of|from|until|year|census|\w+ \d{1,2},|\w+ber|\w+ary|march|april|may) $")
_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_WORDS = {
    **{word: value for value, word in enumerate(_UNITS.split())},
    **{word: 10 * value for value, word in enumerate(_TENS.split(), start=2)},
    "dozen": 12,
}
_WORD = "|".join(sorted(_WORDS, key=len, reverse=True))
_SPELT = re.compile(rf"\b(?:{_WORD})(?:[ -](?:and )?(?:{_WORD}|hundred|thousand|million))*\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Found:
    value: Decimal
    start: int
    end: int
    scale: int | None = None
    factor: Decimal | None = None
    """Conversion of the unit that follows; None where no unit follows."""

    @property
    def total(self) -> Decimal:
        return self.value.scaleb(self.scale or 0) * (Decimal(1) if self.factor is None else self.factor)


def read_numbers(text: str, relation: Relation) -> list[str]:
    """Return the numbers that a text gives for a relation, in its unit, as plain digits ("1250").

    In prose, a number without the unit counts only if it is the only one.
    """
    totals = [number.total for number in _meant(text, relation)[1]]
    return list(dict.fromkeys(plain(total) for total in totals if _is_writable(total)))


def refused_numbers(text: str, relation: Relation) -> list[str]:
    """Return the numbers of an answer that cannot be written as plain digits, as the model wrote them: "1e30"."""
    read, numbers = _meant(text, relation)
    return [read[number.start : number.end] for number in numbers if not _is_writable(number.total)]


def _meant(text: str, relation: Relation) -> tuple[str, list[_Found]]:
    """Return the text without remarks, and the numbers that an answer means, of any size, with their positions."""
    text = text[:LONGEST].translate(_SEPARATORS)
    bare = re.sub(r"\([^()]{0,200}\)", " ", text)
    numbers = list(_merged(bare, relation))
    if not numbers:
        bare, numbers = text, list(_merged(text, relation))
    numbers = [number for number in numbers if number.factor is not None] or numbers
    if len(numbers) > 1 and numbers[0].factor is None:
        numbers = [number for number in numbers if not _is_year(number, bare)]
        if len(numbers) > 1 and len(bare.split()) > SENTENCE + len(numbers):
            return bare, []
    return bare, numbers


def plain(value: Decimal) -> str:
    """Return a number as digits, without exponent or trailing zeros."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _is_writable(value: Decimal) -> bool:
    return not value or -MOST_PLACES <= value.adjusted() < MOST_DIGITS


def _is_year(number: _Found, text: str) -> bool:
    before = text[max(0, number.start - 20) : number.start].lower()
    return 1000 <= number.value <= 2100 and number.scale is None and bool(_DATE.search(before))


def _merged(text: str, relation: Relation) -> Iterator[_Found]:
    """Yield numbers in order of position, with the ends of a range merged."""
    last: _Found | None = None
    for number in sorted(
        [*_in_digits(text, relation.shape.integer), *_in_words(text)], key=lambda number: number.start
    ):
        following = _with_unit(number, text, relation)
        if last is not None and _is_range(last, following, text):
            last = _midpoint(last, following, relation)
            continue
        if last is not None:
            yield last
        last = following
    if last is not None:
        yield last


def _in_digits(text: str, integer: bool) -> Iterator[_Found]:
    for match in _NUMBER.finditer(text):
        whole, part = re.sub(r"\D", "", match["whole"]), match["part"] or ""
        if integer and len(part) == 4 and len(whole) <= 3:  # "12.000 seats" are no decimals, since seats are whole
            whole, part = whole + part[1:], ""
        sign = "-" if match["sign"] and not text[max(0, match.start() - 2) : match.start()].strip() else ""
        value = Decimal(f"{sign}{whole}{part.replace(',', '.')}").scaleb(_power(match["power"] or match["raised"]))
        scale = _SCALE.match(text, match.end())
        end = scale.end() if scale else match.end()
        yield _Found(value, match.start(), end, _SCALES[scale[1].lower()] if scale else None)


def _power(digits: str | None) -> int:
    """Return a power of ten from its digits, cut to MOST_POWER in size."""
    if digits is None:
        return 0
    digits = digits.translate(_LOWERED)
    sign, size = (-1 if digits[0] == "-" else 1), digits.lstrip("+-").lstrip("0")
    return sign * min(int(size[: len(str(MOST_POWER)) + 1] or 0), MOST_POWER)


def _in_words(text: str) -> Iterator[_Found]:
    for match in _SPELT.finditer(text):
        total = current = 0
        for word in re.findall(r"[a-z]+", match[0].lower())[:20]:
            if word in ("hundred", "dozen"):
                current = max(current, 1) * {"hundred": 100, "dozen": 12}[word]
            elif word in _SCALES:
                total, current = total + max(current, 1) * 10 ** _SCALES[word], 0
            else:
                current += _WORDS.get(word, 0)
        yield _Found(Decimal(total + current), match.start(), match.end())


def _with_unit(number: _Found, text: str, relation: Relation) -> _Found:
    if relation.unit is None:
        return number
    if not any(unit.match(relation.unit) for unit, _ in _AREA_UNITS):
        named = text[number.end : number.end + 40].lower().lstrip("- \n").startswith(relation.unit.lower())
        return replace(number, factor=Decimal(1)) if named else number
    wanted = next(factor for unit, factor in _AREA_UNITS if unit.match(relation.unit))
    for unit, factor in _AREA_UNITS:
        if hit := unit.match(text, number.end):
            return replace(number, end=hit.end(), factor=factor / wanted)
    return number


def _is_range(low: _Found, high: _Found, text: str) -> bool:
    link = text[low.end : high.start]
    if len(link) > 20 or not _RANGE.fullmatch(link):
        return False
    if link.strip().lower() == "and" and not _BETWEEN.search(text[max(0, low.start - 20) : low.start]):
        return False
    return _shared(low, high).total < high.total


def _shared(low: _Found, high: _Found) -> _Found:
    """Return the lower end of a range with the scale and unit that stand only behind the upper end."""
    scale = low.scale if low.scale is not None or low.value >= 1000 else high.scale
    return replace(low, scale=scale, factor=high.factor if low.factor is None else low.factor)


def _midpoint(low: _Found, high: _Found, relation: Relation) -> _Found:
    ends = _shared(low, high).total, high.total
    middle = next((end for end in ends if not _is_writable(end)), (ends[0] + ends[1]) / 2)
    unit = Decimal(1) if high.factor is not None else None
    whole = middle.to_integral_value(ROUND_FLOOR) if relation.shape.integer else middle
    return _Found(whole, low.start, high.end, None, unit)
