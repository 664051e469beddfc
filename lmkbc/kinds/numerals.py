"""Numerals in a text: digits with separators, fractions, powers of ten, scales and number words, with their positions.

A comma, a dot, an apostrophe, an underscore or a blank before exactly three digits groups thousands. A single
comma or dot does so by the language, and by what is counted. Any other comma before digits is a decimal comma, and
so is one behind "0". Any other dot is a decimal point.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

from lmkbc.answer.markup import unescaped, unstyled, without_signs
from lmkbc.kinds.units import LETTER
from lmkbc.words import FORM, SCALES, TABLES, replaced

MOST_POWER = 1000
"""Powers of ten are cut to this: larger ones are unwritable anyway."""


class Numeral(NamedTuple):
    """A number in a text, with the position of its first character, and that behind its last one.

    in_words: whether it is spelled out, so that scales such as "million" are part of it. mark: the comma or dot before
    three digits that may as well be a decimal mark; the value is then that of thousands.
    """

    value: Decimal
    start: int
    end: int
    in_words: bool = False
    mark: str = ""


_MARKS = str.maketrans({"٬": ",", "٫": ".", "º": "°", "˚": "°", "…": " ", "〜": "~", "⁄": "/", "″": '"', "′": "'"}) | {
    **dict.fromkeys(map(ord, "’‘ʼ´"), "'"),
    **dict.fromkeys(map(ord, "−‐‑‒﹣－⁻"), "-"),
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
    text = replaced(text, "halves")
    return FORM.fraction.sub(_decimal, FORM.myriads.sub(_summed, FORM.coins.sub(_with_coins, text)))


def _with_coins(amount: re.Match[str]) -> str:
    whole, currency, coins = filter(None, amount.groups())
    return f"{whole}.{int(coins):02} {currency}"


def _summed(number: re.Match[str]) -> str:
    parts = re.findall(r"([\d.]+)\s?(\D?)", number[0])
    return f"{sum(Decimal(digits).scaleb(SCALES.get(scale, 0)) for digits, scale in parts):f}"


def _decimal(fraction: re.Match[str]) -> str:
    whole, above, below = (int(part or 0) for part in fraction.groups())
    return f"{round(whole + Decimal(above) / below, 7):f}" if above < below else fraction[0]


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
            before = text[max(0, start - 12) : start]
            minus = FORM.signed.search(before) if negative and start else None
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


_SCALE = re.compile(
    rf"[-\s]{{0,3}}(?:({'|'.join(sorted(SCALES, key=len, reverse=True))})s?(?!{LETTER})\.?|(dozen)s?\b)", re.IGNORECASE
)
_TEENS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_WORDS = {
    **{word: value for value, word in enumerate(_TEENS.split())},
    **{word: 10 * value for value, word in enumerate(_TENS.split(), start=2)},
    "dozen": 12,
}
_WORD = "|".join(sorted(_WORDS, key=len, reverse=True))
_LARGE = "hundred|thousand|lakh|million|crore|billion|trillion"
_LARGE_ONE = rf"(?:{_LARGE}|dozen)s?\b(?: and(?= (?:{_WORD})\b))?"
_SPELT = re.compile(
    rf"\b(?:(?!one of\b)(?:{_WORD})\b|(?:an?|(?:half|quarter)(?: of)?(?: an?)?) {_LARGE_ONE})"
    rf"(?:[ -](?:and an? (?:half|quarter)\b|point(?= (?:{_WORD})\b)|(?:{_WORD})\b|{_LARGE_ONE}))*(?!{LETTER})",
    re.IGNORECASE,
)
_PARTS = {"half": Decimal("0.5"), "quarter": Decimal("0.25")}


def scale_at(text: str, start: int) -> tuple[Decimal | None, int]:
    """Return the factor of the words behind a number, as "million" or "lakh crore", and the position behind them."""
    factor, end = None, start
    while match := _SCALE.match(text, end):
        factor = (factor or Decimal(1)) * (12 if match[2] else Decimal(1).scaleb(SCALES[match[1].lower()]))
        end = match.end()
    return factor, end


_OTHERS = {
    word: Decimal(number)
    for line in TABLES["numeral"].values()
    for number, words in enumerate(line.split())
    for word in words.casefold().translate(_MARKS).split("/")
}
"""Number words of other languages than English, in small letters."""
SHORT, FEW, MOST = 3, 3, 6
"""Letters of a number word that may mean something else, as "due" does; words of a text that has one, and others."""


def in_other_words(text: str) -> Iterator[Numeral]:
    """Yield the first number word of another language than English in a few words without digits: "zwei Kinder"."""
    words = [*re.finditer(r"[^\W_]+", text)]
    if len(words) > MOST or any(map(str.isdigit, text)):
        return
    if hanzi := FORM.hanzi_number.search(text):
        yield Numeral(_of_hanzi(hanzi[1]), *hanzi.span(1))
        return
    for word in words:
        value = _OTHERS.get(word[0].casefold())
        if value is not None and (len(word[0]) > SHORT or len(words) <= FEW):
            yield Numeral(value, *word.span())
            return


def _of_hanzi(number: str) -> Decimal:
    total = current = 0
    for sign in number:
        value = int(unicodedata.numeric(sign))
        total, current = (total + (current or 1) * value, 0) if value >= 10 else (total, value)
    return Decimal(total + current)


def in_words(text: str) -> Iterator[Numeral]:
    """Yield the numerals in English words of a readable text: "twenty-five thousand", "half a million"."""
    for match in _SPELT.finditer(text):
        total = current = place = Decimal(0)
        last = Decimal(1)
        for word in re.findall(r"[a-z]+", match[0].lower())[:20]:
            large = word.removesuffix("s")
            if large in ("hundred", "dozen"):
                current = (current or Decimal(1)) * (100 if large == "hundred" else 12)
            elif large in SCALES:
                last = Decimal(1).scaleb(SCALES[large])
                total, current, place = total + (current or 1) * last, Decimal(0), Decimal(0)
            elif word in _PARTS and total and not current:  # "a million and a half"
                total += last * _PARTS[word]
            elif word == "point":
                place = Decimal(1)
            elif place:
                place /= 10
                current += place * _WORDS.get(word, 0)
            else:
                current += _PARTS.get(word) or _WORDS.get(word, 0)
        yield Numeral(total + current, match.start(), match.end(), in_words=True)
