"""Read a final answer behind reasoning, and choose examples by a hash (CoRe, LM-KBC 2026)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from random import Random
from typing import ClassVar

from lmkbc.answer.formats import AnswerFormat
from lmkbc.answer.parse import Parsed
from lmkbc.ask.examples import Shots
from lmkbc.select.rule import Rule
from lmkbc.types import Candidate, CandidateSet, Example, Prediction, Query, State

_FIGURE = re.compile(r"(\d[\d,]*(?:\.\d+)?)\s*(thousand|million|billion)?", re.IGNORECASE)
SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
_FUNCTION = frozenset("a an and are as at because but by for from i if in is it no not of on or that the to we".split())
MARKS = "final answer:", "answer:"


@dataclass(frozen=True, kw_only=True)
class FinalFormat(AnswerFormat):
    """An answer behind the last "final answer:", else behind the last "answer:", else in the whole reply.

    numbers: whether it is a number, the first behind the mark or the last of the reply; else it is names with commas.
    """

    joint: str = ", "
    tolerant: bool = False
    numbers: bool

    def split(self, text: str, null: str = "") -> Parsed:
        """Return the number or the names; no object where the answer is the text for it, whatever its marks."""
        whole = super().split(text, null)
        last = text.strip().rpartition("\n")[2].rpartition(":")[2].strip(" .").casefold()
        return Parsed(State.ABSTAINED) if not whole.objects and last == null.casefold() else whole

    def parts(self, answer: str) -> list[str]:
        """Return the number, or the names of the first line that are neither long nor begin as a clause does."""
        lower = answer.lower()
        mark = next((mark for mark in MARKS if mark in lower), "")
        final = answer[lower.rfind(mark) + len(mark) :] if mark else answer
        if self.numbers:
            found = [*_FIGURE.finditer(final)][:1] if mark else []
            found = found or [*_FIGURE.finditer(answer)][-1:]
            return [format(_value(one), "f") for one in found]
        line = next((line for line in final.splitlines() if line.strip()), "").strip(" .")
        names = [name.strip(" .") for name in line.split(",")]
        if [name.casefold() for name in names] == ["none"]:
            return []
        return [name for name in names if len(name) <= 80 and 0 < len(name.split()) <= 12 and not _is_clause(name)]


def _value(found: re.Match[str]) -> Decimal:
    return Decimal(found[1].replace(",", "")) * SCALES.get((found[2] or "").lower(), 1)


def _is_clause(name: str) -> bool:
    return name.split(maxsplit=1)[0] in _FUNCTION


@dataclass(frozen=True, kw_only=True)
class SeededShots(Shots):
    """The k examples that a generator of random numbers draws for a query.

    base: with relation and subject, its SHA-256 is the generator's seed.
    """

    REPLACES: ClassVar[tuple[str, ...]] = ("draw",)

    base: int = 42

    def chosen(self, query: Query, free: Iterable[Example]) -> list[Example]:
        """Return the examples, in the order in which they are drawn; all in their own order if there are at most k."""
        pool = [*free]
        key = sha256(f"{self.base}:{query.relation}:{query.subject}".encode()).hexdigest()
        return Random(int(key, 16) % 2**32).sample(pool, self.k) if len(pool) > self.k else pool


@dataclass(frozen=True, kw_only=True)
class OrNumber(Rule):
    """Select as `inner` does, or answer with a number if that keeps nothing. otherwise: the number."""

    name: ClassVar[str] = "core26/or-number"
    inner: Rule
    otherwise: float | None = None

    def select(self, candidates: CandidateSet) -> Prediction:
        """Return the selection, or the number."""
        kept = self.inner.select(candidates)
        if kept.failed or kept.objects or self.otherwise is None:
            return kept
        text = format(Decimal(repr(self.otherwise)), "f").removesuffix(".0")
        return Prediction(kept.query, (Candidate(text, 0.0, id=text),))


COMPONENTS = {
    "core26/names": FinalFormat(numbers=False),
    "core26/number": FinalFormat(numbers=True),
    "core26/shots": SeededShots,
    OrNumber.name: OrNumber,
}
