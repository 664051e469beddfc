"""Names in linking: the key for comparing them, ids within texts, typing errors, other wordings to search."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from zlib import crc32

from rapidfuzz.distance import OSA

THIRDS = (0, 1, 2)


def filed_under(key: str) -> list[int]:
    """Return the three hashes under which the index stores a key."""
    return [_hash(key, len(key), third) for third in THIRDS]


def looked_up(key: str) -> set[int]:
    """Return the hashes under which every key within one edit of this one is stored."""
    hashes = {_hash(key, length, third) for length in range(max(0, len(key) - 1), len(key) + 2) for third in THIRDS}
    for cut in (len(key) // 3, len(key) * 2 // 3):
        if 0 < cut < len(key):
            hashes.add(_hash(key[: cut - 1] + key[cut] + key[cut - 1] + key[cut + 1 :], len(key), 0))
    return hashes


def _hash(key: str, length: int, third: int) -> int:
    """Return a hash of `key` without one third, for comparison with keys of a length.

    The part before the third is counted from the left, the part after it from the right.
    """
    cuts = (0, length // 3, length * 2 // 3, length)
    kept = key[: cuts[third]] + "\0" + key[max(0, len(key) - length + cuts[third + 1]) :]
    return crc32(f"{length}.{third}.{kept}".encode()) - (1 << 31)


_PARENTHESES = re.compile(r"\s*\([^()]*\)")


_YEAR = re.compile(r"\b\d{3,4}\b")


LONGEST_NAME = 250
"""Longer texts are prose, not names: labels and aliases in Wikidata have at most 250 characters."""


TYPO_WORD = 6
"""Fewest letters of a word with a typing error: in shorter words an edit often gives another name (Iran, Iraq)."""


def sendable(text: str) -> str:
    """Return a model's text in a form that can be stored and sent: stripped, without lone surrogates."""
    return text.encode("utf-8", "ignore").decode().strip()


def plausible_typo(text: str, name: str) -> bool:
    """Return whether `text` may be `name` mistyped: one edit in a long word, not of its first letter or a digit."""
    if text == name or not text or text[0] != name[0] or OSA.distance(text, name, score_cutoff=1) > 1:
        return False
    here, there = text.split(), name.split()
    if len(here) != len(there):
        return max(len(text), len(name)) >= TYPO_WORD
    changed = next(pair for pair in zip(here, there, strict=True) if pair[0] != pair[1])
    return all(word.isalpha() for word in changed) and max(map(len, changed)) >= TYPO_WORD


def variants(text: str, suffixes: Sequence[str] = ()) -> Iterator[str]:
    """Yield other wordings of a text to search, the likeliest first; changes of case alone come last.

    Parentheses with a year stay, since they name an entity at a date.
    """
    bare = " ".join(text.split())
    if not _YEAR.search(" ".join(_PARENTHESES.findall(bare))):
        bare = _PARENTHESES.sub("", bare).strip()
    head = bare.partition(":")[0].strip()
    ways = dict.fromkeys((bare, head, *typed(bare, suffixes), _singular(bare), bare.title()))
    yield from (way for way in ways if way and way != text)


def typed(text: str, suffixes: Sequence[str]) -> list[str]:
    """Return a bare name with each type word, as in "Don River"; [] if the name ends in a type word already."""
    bare = not any(text.casefold().endswith(suffix.casefold()) for suffix in suffixes)
    return [f"{text} {suffix}" for suffix in suffixes] if bare else []


def _singular(text: str) -> str:
    """Return the singular of an English plural by its ending; other texts unchanged."""
    for plural, singular in (("ies", "y"), ("sses", "ss"), ("ches", "ch"), ("shes", "sh"), ("xes", "x"), ("s", "")):
        if len(text) > len(plural) + 2 and text.endswith(plural) and not text.endswith(("ss", "us", "is")):
            return text.removesuffix(plural) + singular
    return text
