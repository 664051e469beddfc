"""Names as linking sees them: the key they are compared by, ids in disguise, typing errors, other ways to ask."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from zlib import crc32

from rapidfuzz.distance import OSA

from lmkbc.names import folded_key

THIRDS = (0, 1, 2)


def filed_under(key: str) -> list[int]:
    """Return the three hashes under which a key is filed."""
    return [_hash(key, len(key), third) for third in THIRDS]


def looked_up(key: str) -> set[int]:
    """Return the hashes under which every key within one edit is filed."""
    hashes = {_hash(key, length, third) for length in range(max(0, len(key) - 1), len(key) + 2) for third in THIRDS}
    for cut in (len(key) // 3, len(key) * 2 // 3):
        if 0 < cut < len(key):
            swapped = key[: cut - 1] + key[cut] + key[cut - 1] + key[cut + 1 :]
            hashes.add(_hash(swapped, len(key), 0))
    return hashes


def _hash(key: str, length: int, third: int) -> int:
    """Hash of what `key` shares with keys of a length that differ from it in one third only.

    What stands before the third is counted from the left, what stands after it from the right.
    """
    cuts = (0, length // 3, length * 2 // 3, length)
    kept = key[: cuts[third]] + "\0" + key[max(0, len(key) - length + cuts[third + 1]) :]
    return crc32(f"{length}.{third}.{kept}".encode()) - (1 << 31)


_PARENTHESES = re.compile(r"\s*\([^()]*\)")


_YEAR = re.compile(r"\b\d{3,4}\b")


LONGEST_NAME = 250
"""Longer texts are prose, not names: Wikidata's labels and aliases hold at most 250 characters."""


TYPO_WORD = 6
"""Letters of the shortest word with typing errors: in shorter words an edit often makes another name (Iran, Iraq)."""


def key(text: str) -> str:
    """Return the form under which two spellings are the same name; never empty unless the text is blank."""
    return folded_key(text) or text.strip().casefold()


def sendable(text: str) -> str:
    """Return a model's text as something that can be stored and sent: stripped, without the halves of broken emoji."""
    return text.encode("utf-8", "ignore").decode().strip()


def plausible_typo(text: str, known: str) -> bool:
    """Return whether `text` may be `known` mistyped: one edit in a long word, not of its first letter or a digit."""
    if text == known or not text or text[0] != known[0] or OSA.distance(text, known, score_cutoff=1) > 1:
        return False
    here, there = text.split(), known.split()
    if len(here) != len(there):
        return max(len(text), len(known)) >= TYPO_WORD
    changed = next(pair for pair in zip(here, there, strict=True) if pair[0] != pair[1])
    return all(word.isalpha() for word in changed) and max(map(len, changed)) >= TYPO_WORD


def variants(text: str, suffixes: Sequence[str] = ()) -> Iterator[str]:
    """Yield other ways to ask for a text that found nothing fitting, likeliest first; case-only changes come last.

    Parentheses that hold a year stay: a country at a historical date is left as it is.
    """
    bare = " ".join(text.split())
    if not _YEAR.search(" ".join(_PARENTHESES.findall(bare))):
        bare = _PARENTHESES.sub("", bare).strip()
    head = bare.partition(":")[0].strip()
    ways = dict.fromkeys((bare, head, *typed(bare, suffixes), _singular(bare), bare.title()))
    yield from (way for way in ways if way and way != text)


def typed(text: str, suffixes: Sequence[str]) -> list[str]:
    """Return a bare name with each type word, as in "Don River"; nothing for a name that holds one already."""
    bare = not any(text.casefold().endswith(suffix.casefold()) for suffix in suffixes)
    return [f"{text} {suffix}" for suffix in suffixes] if bare else []


def _singular(text: str) -> str:
    """Undo an English plural by its ending; the text itself where it is no plural."""
    for plural, singular in (("ies", "y"), ("sses", "ss"), ("ches", "ch"), ("shes", "sh"), ("xes", "x"), ("s", "")):
        if len(text) > len(plural) + 2 and text.endswith(plural) and not text.endswith(("ss", "us", "is")):
            return text.removesuffix(plural) + singular
    return text
