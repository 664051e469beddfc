"""Numerals in a text: digits with separators, fractions, powers of ten, scales and number words, with their positions.

A comma, a dot, an apostrophe, an underscore or a blank before exactly three digits groups thousands. A single
comma or dot does so by the language, and by what is counted. Any other comma before digits is a decimal comma, and
so is one behind "0". Any other dot is a decimal point.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from functools import cache, lru_cache
from itertools import islice
from typing import NamedTuple

from babel import Locale, UnknownLocaleError

from lmkbc.answer.markup import unescaped, unstyled, without_signs
from lmkbc.kinds.units import LETTER, named_at, unit_at
from lmkbc.patterns import Patterns
from lmkbc.relation import Relation
from lmkbc.words import FORM, LONGEST_SENTENCE, SCALES, TABLES, WORDS, replaced

MOST_POWER = 1000
"""Powers of ten are cut to this: larger ones are unwritable anyway."""


class Numeral(NamedTuple):
    """A number in a text, with the position of its first character, and that behind its last one.

    words: number of its words if it is spelled out, so that scales such as "million" are part of it. mark: the
    comma or dot before three digits that may as well be a decimal mark; the value is then that of thousands.
    """

    value: Decimal
    start: int
    end: int
    words: int = 0
    mark: str = ""


_MARKS = str.maketrans({"٬": ",", "٫": ".", "º": "°", "˚": "°", "…": " ", "〜": "~", "⁄": "/", "″": '"', "′": "'"}) | {
    **dict.fromkeys(map(ord, "’‘ʼ´"), "'"),
    **dict.fromkeys(map(ord, "−‐‑‒﹣－⁻"), "-"),
    **dict.fromkeys(map(ord, "两兩"), "二"),
    **dict.fromkeys(map(ord, "ıİ"), "i"),  # patterns take them for "i" where case does not count
    **dict.fromkeys(range(ord("①"), ord("⑳") + 1), " "),
    **dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad"), None),
}


def readable(text: str) -> str:
    """Return a text with plain digits and marks: without LaTeX, HTML, emphasis, and signs of other scripts.

    Raised digits become "^2", fractions decimals, 5'11" becomes "5 ft 11 in", and "5 euros and 20 cents" "5.20 euros".
    """
    if not text.isascii():
        text = FORM.raised_digits.sub(
            lambda sign: f"^{'-' if sign[1] == '⁻' else ''}{unicodedata.normalize('NFKC', sign[2])}", text
        )
        text = FORM.vulgar_fraction.sub(lambda one: f" {unicodedata.normalize('NFKC', one[0])}", text.translate(_MARKS))
        text = unicodedata.normalize("NFKC", text).translate(_MARKS)
    if "&" in text:
        text = unescaped(text).translate(_MARKS)
    if FORM.tagged.search(text):
        text = without_signs(unstyled(text))
    text = replaced(text, "numbers") if FORM.marked_number.search(text) else text
    text = replaced(replaced(text, "scales"), "halves")
    return FORM.fraction.sub(_decimal, FORM.myriads.sub(_summed, FORM.coins.sub(_with_coins, text)))


def _with_coins(amount: re.Match[str]) -> str:
    whole, currency, coins = filter(None, amount.groups())
    return f"{whole}.{int(coins):02} {currency}"


def _summed(number: re.Match[str]) -> str:
    parts = re.findall(r"([\d.]+)\s?(\D?)", number[0])
    return f"{sum(Decimal(digits) * SCALES.get(scale, 1) for digits, scale in parts):f}"


def _decimal(fraction: re.Match[str]) -> str:
    whole, above, below = (int(part or 0) for part in fraction.groups())
    return f"{round(whole + Decimal(above) / below, 7):f}" if above < below else fraction[0]


def has_decimal_comma(text: str, relation: Relation) -> bool:
    """Return whether a comma is the decimal mark in the language of a text, else in that of its relation.

    Without words that show a language, the relation's language decides, and without that, its question.
    """
    if (says := _has_comma(text[:LONGEST_SENTENCE])) is None:
        says = _is_comma_language(relation.language) if relation.language else _has_comma(relation.question)
    return bool(says)


@lru_cache(maxsize=256)
def _has_comma(text: str) -> bool | None:
    """Return whether more words of a text are of languages with a decimal comma than English; None for as many."""
    words = {*re.findall(r"[^\W\d_]+", text.casefold())}
    comma, point = (len(words & WORDS[name]) for name in ("decimal_comma", "stop"))
    return None if comma == point else comma > point


@cache
def _is_comma_language(code: str) -> bool:
    with suppress(ValueError, UnknownLocaleError):
        return bool(Locale.parse(code, sep="-").number_symbols["latn"]["decimal"] == ",")
    return False


_START = rf"(?<!{LETTER})(?<![.,^])(?<!\^-)"
_GROUPED = r"(?!0)\d{1,3}(?P<mark>[,.' _])\d{3}(?:(?P=mark)\d{3}){0,6}(?!\d)"
_DIGITS = re.compile(
    rf"{_START}(?P<sign>[-–](?=[\d.]))?(?:10\^(?P<ten>[-+]?\d+)"
    rf"|(?P<whole>\d{{1,2}}(?:,\d\d){{1,6}},\d{{3}}(?!\d)|{_GROUPED}"
    r"|\d+(?!\d)|(?=\.\d))(?!(?:st|nd|rd|th|(?<=0)s)\b)"
    r"(?P<part>(?!(?P=mark))\.\d{1,40}|(?<=\d[.' _]\d{3}),\d{1,40}"
    r"|(?<=\b0),\d{1,40}|,\d{1,2}(?!\d)|(?<!\d{4}),\d{4,40})?"
    r"(?:(?:e|×10\^)(?P<power>[-+]?\d+)\b)?)",
    re.IGNORECASE,
)


def in_digits(text: str, *, negative: bool) -> Iterator[Numeral]:
    """Yield the numerals in digits of a readable text. negative: whether numbers may be negative.

    A sign counts only at the start of the text if they may not.
    """
    first = len(text) - len(text.lstrip())
    for match in _DIGITS.finditer(text):
        start, sign = match.start(), 1
        if match["sign"]:
            minus = FORM.signed.search(text[max(0, start - 12) : start]) if negative and start else None
            sign, start = (-1, start) if minus or start == first else (1, start + 1)
        if match["ten"]:
            yield Numeral(sign * Decimal(1).scaleb(_power(match["ten"])), start, match.end())
            continue
        digits, mark, part = match["whole"] or "0", match["mark"], match["part"] or ""
        either = mark if mark and mark in ",." and digits.count(mark) == 1 and not part else ""
        digits = digits.replace(mark or ",", "") + part.replace(",", ".")
        yield Numeral(sign * Decimal(digits).scaleb(_power(match["power"])), start, match.end(), mark=either)


def _power(digits: str | None) -> int:
    """Return a power of ten from its digits, cut to MOST_POWER in size."""
    if digits is None:
        return 0
    size = digits.lstrip("+-").lstrip("0")
    return (-1 if digits[0] == "-" else 1) * min(int(size[: len(str(MOST_POWER)) + 1] or 0), MOST_POWER)


_SCALE = re.compile(rf"[-\s]{{0,3}}({'|'.join(sorted(SCALES, key=len, reverse=True))})s?(?!{LETTER})\.?", re.IGNORECASE)


def scale_at(text: str, start: int) -> tuple[Decimal | None, int]:
    """Return the factor of the words behind a number, as "million" or "lakh crore", and the position behind them."""
    factor, end = None, start
    while match := _SCALE.match(text, end):
        factor = (factor or Decimal(1)) * SCALES[match[1].lower()]
        end = match.end()
    return factor, end


_ORDER = (*range(21), *range(30, 101, 10), *range(200, 1001, 100), 2000, 2_000_000, "0.5", "0.25")
"""Numbers of the words in a line of the table of numerals."""
_SIZES = {
    "zero": (0, 0),
    "half": (0.25, 0.5),
    "unit": (1, 9),
    "teen": (10, 19),
    "ten": (20, 90),
    "hundred": (100, 100),
    "hundreds": (200, 900),
    "thousand": (1000, 2_000_000),
}
"""Name in the grammar of numerals -> least and greatest number of its words."""
SHORT, FEW, MOST = 3, 3, 6
"""Letters of a number word that may mean something else, as "due" does; words of a text that has one, and others."""
LONGEST, HEAD = 400, 3
"""Letters of a text that has number words of other languages than English; first letters by which they are found."""


@cache
def _languages() -> dict[str, tuple[Mapping[str, Decimal], frozenset[str], Patterns]]:
    """Return language -> number words, their first letters, and the grammar of numerals in them."""
    found: dict[str, tuple[Mapping[str, Decimal], frozenset[str], Patterns]] = {}
    for code, line in TABLES["numeral"].items():
        values = {
            word.replace("_", " "): Decimal(number)
            for number, words in zip(_ORDER, line.translate(_MARKS).split(), strict=False)
            for word in words.split("/")
            if word != "-"
        }
        sizes = {name: [word for word in values if low <= values[word] <= high] for name, (low, high) in _SIZES.items()}
        scales = [word for word, factor in SCALES.items() if factor >= 12 and len(word) > 2]
        own = {
            name: {"any": sorted(map(re.escape, words), key=len, reverse=True) or ["(?!)"]}
            for name, words in {**sizes, "scale": scales, "words": [*values, *SCALES, "point"]}.items()
        }
        found[code] = values, frozenset(word[:HEAD] for word in values), Patterns(TABLES["grammar"] | own)
    return found


def in_words(text: str) -> list[Numeral]:
    """Return the numerals in English words of a readable text: "twenty-five thousand", "half a million"."""
    values, _, grammar = _languages()["en"]
    return _spelt(text, grammar.english, grammar.word, values)


def _spelt(text: str, form: re.Pattern[str], word: re.Pattern[str], values: Mapping[str, Decimal]) -> list[Numeral]:
    """Return the numerals of a form in a text."""
    found = ((match, word.findall(match[0].lower())) for match in form.finditer(text))
    return [Numeral(_composed(words, values), *match.span(), len(words)) for match, words in found]


def _composed(words: Iterable[str], values: Mapping[str, Decimal], least: int = 1000) -> Decimal:
    """Return the number of number words. least: scale from which on one multiplies all words before it."""
    total = group = current = place = Decimal(0)
    last = Decimal(1)
    for word in islice(words, 20):
        value = values.get(word, Decimal(SCALES.get(word, 0)))
        if value >= least:
            total, last = total + (group + current or 1) * value, value
            group = current = place = Decimal(0)
        elif value == 100 or word in SCALES:
            group, current = group + (current or 1) * value, Decimal(0)
        elif 0 < value < 1 and total and not current:  # "a million and a half"
            total += last * value
        elif word == "point":
            place = Decimal(1)
        else:
            place /= 10
            current += value * (place or 1)
    return total + group + current


def in_other_words(text: str) -> list[Numeral]:
    """Return the numerals in words of another language than English: "zwei Kinder", "ein Meter zwanzig".

    The text has no digits. If no unit stands behind any, the first one counts that may be no article. One of a single
    word counts in a few words alone.
    """
    if len(text) > LONGEST or any(map(str.isdigit, text)) or FORM.several.search(text):
        return []
    if hanzi := FORM.hanzi_number.search(text):
        signs = {sign: Decimal(int(unicodedata.numeric(sign))) for sign in hanzi[1]}
        return [Numeral(_composed(hanzi[1], signs, 10_000), *hanzi.span(1), len(signs))]
    words = re.findall(r"[^\W_]+", text.lower())
    spelt = (
        _spelt(text, grammar.numeral, grammar.word, values)
        for code, (values, own, grammar) in _languages().items()
        if code != "en" and not own.isdisjoint(word[:HEAD] for word in words)
    )
    found = max(spelt, key=lambda one: sum(numeral.end - numeral.start for numeral in one), default=[])
    units = (unit for one in found for unit in (unit_at(text, one.end), named_at(text, one.end)))
    if len(words) <= 2 * MOST and (FORM.sons.search(text) or any(unit and unit.sure > 1 for unit in units)):
        return found
    first = sorted(found, key=lambda numeral: numeral.value == 1)[:1]
    return [one for one in first if one.words > 1 or len(words) <= (FEW if one.end - one.start <= SHORT else MOST)]
