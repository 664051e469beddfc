"""Random texts by the grammar of the reader's own patterns and words: units, months, labels, marks of turns, quotes.

Each part of a text is what one of the reader's compiled expressions matches, or a word of its tables. Some letters and
digits become others that equal them where case does not count, or in another script.
"""

import random
import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from importlib import import_module
from pkgutil import iter_modules
from re import _constants as op  # type: ignore[attr-defined] -- the parser of patterns has no public name
from re import _parser  # type: ignore[attr-defined]
from typing import Any

import lmkbc.answer
from lmkbc.words import FORM, TABLES, WORDS

READERS = [
    *(f"lmkbc.answer.{module.name}" for module in iter_modules(lmkbc.answer.__path__)),
    *("lmkbc.models.thoughts", "lmkbc.models.server.refusal", "lmkbc.names"),
]
"""Modules that read what a model or a server writes."""

ODD = {"i": "ıİ", "I": "İı", "s": "ſß", "k": "\u212a", "K": "\u212a", "a": "ａªа", "e": "é€", "2": "²２٢", "3": "³３۳"}
ODD |= {" ": "\u00a0\u2009\u3000\t", "-": "−–‑", "'": "’´", '"': "“”„«»", ".": "。…", "1": "１①¹½", "5": "５٥⁵"}
"""Signs -> those that are taken for them in some places and not in others."""

ANY = [chr(code) for code in (*range(32, 127), 10, 0x131, 0x130, 0xE9, 0xB2, 0x200D, 0x661, 0x4E00, 0x1F1E8, 0xFF11)]
NAMES = "Chile|Bolivia|São Tomé|Ann Lee|Washington, D.C.|Al|The|O'Neill & Co.|12,345.6|10^40|1985|none|[]|Q298".split(
    "|"
)
JOINTS = [
    "",
    " ",
    ", ",
    "; ",
    "\n",
    " and ",
    ": ",
    ". ",
    "\n- ",
    '", "',
    " is ",
    "The answer is ",
    "It borders ",
    "1. ",
]


@cache
def patterns() -> list[re.Pattern[str]]:
    """Return all expressions that the reader's modules hold, also in lists and tables."""

    def inside(value: object, levels: int = 3) -> Iterator[re.Pattern[str]]:
        if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
            yield value
        elif isinstance(value, list | tuple | dict) and levels:
            for one in value.values() if isinstance(value, dict) else value:
                yield from inside(one, levels - 1)

    modules = map(import_module, READERS)
    own = (one for module in modules for value in vars(module).values() for one in inside(value))
    return list(dict.fromkeys([*own, *(getattr(FORM, name) for name in TABLES["pattern"])]))


@cache
def words() -> list[str]:
    """Return the words of the reader's tables."""
    tables = (value for name in READERS for value in vars(import_module(name)).values())
    found = {word for table in tables if isinstance(table, dict | frozenset) for word in table if isinstance(word, str)}
    found |= frozenset[str]().union(*WORDS.values())
    return sorted(found)


@lru_cache(maxsize=512)
def _tree(pattern: re.Pattern[str]) -> Any:
    return _parser.parse(pattern.pattern, pattern.flags)


def match_of(pattern: re.Pattern[str], draw: random.Random) -> str:
    """Return a text that an expression matches, but for what it asserts about the places around it."""
    return _made(_tree(pattern), draw, {})


def _made(tree: Any, draw: random.Random, groups: dict[int, str]) -> str:
    made = []
    for kind, value in tree:
        if kind is op.LITERAL:
            made.append(chr(value))
        elif kind in (op.NOT_LITERAL, op.ANY):
            made.append(draw.choice(ANY))
        elif kind is op.IN:
            made.append(_member(value, draw))
        elif kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            least, most, inner = value
            times = min(most, least + draw.choice((0, 0, 1, 1, 2, 5)))
            made += [_made(inner, draw, groups) for _ in range(times)]
        elif kind is op.BRANCH:
            made.append(_made(draw.choice(value[1]), draw, groups))
        elif kind is op.SUBPATTERN:
            made.append(_made(value[3], draw, groups))
            groups[value[0]] = made[-1]
        elif kind is op.ATOMIC_GROUP:
            made.append(_made(value, draw, groups))
        elif kind is op.GROUPREF:
            made.append(groups.get(value, ""))
        elif kind is op.ASSERT and draw.random() < 0.7:
            made.append(_made(value[1], draw, groups))
    return "".join(made)


def _member(members: Sequence[Any], draw: random.Random) -> str:
    kind, value = draw.choice(members)
    if kind is op.LITERAL:
        return draw.choice(ANY) if members[0][0] is op.NEGATE else chr(value)
    if kind is op.RANGE:
        return chr(draw.randint(*value))
    if kind is op.CATEGORY:
        return draw.choice({op.CATEGORY_DIGIT: "0123456789٣", op.CATEGORY_SPACE: " \n\t\u00a0"}.get(value, "abIZ_é"))
    return draw.choice(ANY)


def text(draw: random.Random, most: int = 8) -> str:
    """Return a random text of the reader's grammar, of at most so many parts."""
    parts = []
    for _ in range(draw.randint(1, most)):
        chance = draw.random()
        if chance < 0.45:
            part = match_of(draw.choice(patterns()), draw)
        elif chance < 0.65:
            part = draw.choice(words())
        elif chance < 0.9:
            part = draw.choice(NAMES)
        else:
            part = str(draw.choice((0, 7, 19, 1985, 10**15, 10**31, 10**45))) + draw.choice(
                ("", "%", " ha", "th century")
            )
        parts += [part if draw.random() < 0.85 else _odd(part, draw), draw.choice(JOINTS)]
    whole = "".join(parts)
    return whole if draw.random() < 0.8 else whole[: draw.randint(0, len(whole))]


def _odd(part: str, draw: random.Random) -> str:
    return "".join(draw.choice(ODD[sign]) if sign in ODD and draw.random() < 0.5 else sign for sign in part)
