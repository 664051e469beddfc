"""Scorer by kinds of objects: quantities, dates and texts are compared by what they mean.

An edition without an official script has it. The scorers of the official scripts divide by the gold with its sign, so
that a gold of -38.83 accepts 5000, and a gold of 0 accepts nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal

from lmkbc.answer.dates import PartialDate, read_date
from lmkbc.answer.units import converted, unit_at, unit_of
from lmkbc.names import folded_key
from lmkbc.relation import Kind, Relation
from lmkbc.scoring.matchers import Counts, MatchingScorer, most_pairs

Coarser = Literal["wrong", "right"]
"""How an answer counts that is less precise than gold but does not contradict it, as 1985 for 12 October 1985."""
_NUMBER = re.compile(r"([+-]?(?:\d{1,3}(?:,\d{2,3})*,\d{3}|\d{1,40})(?:\.\d{1,40})?(?:[eE][+-]?\d{1,2})?)\s?")
_TEXTS = MatchingScorer(frozenset())


@dataclass(frozen=True, slots=True)
class KindScorer:
    """Scorer by kinds: each answer matches at most one gold object, and gold lists aliases or single texts.

    - A quantity is right within the relation's tolerance, in its unit or in any other unit of the dimension.
    - A date is right if it equals gold at the precision of gold; "circa" does not matter.
    - A text is right if it equals an alias, folded. Texts of the kinds in `exact` are compared as written.

    relations: relations by their names in rows; `Edition.knowing` sets them. tolerance: relative tolerance that rules
    for numbers assume when they are tuned.
    """

    coarser: Coarser = "wrong"
    exact: frozenset[Kind] = frozenset({"url", "identifier"})
    tolerance: float = 0.05
    relations: Mapping[str, Relation] = field(default_factory=dict)

    def key(self, text: str) -> str:
        """Return the folded text."""
        return _TEXTS.key(text)

    def matches(self, value: str, gold: Sequence[Any], relation: str) -> tuple[int, ...]:
        """Return the indices of the gold objects that an answer could match."""
        lists, asked = _alias_lists(gold), self._compared(relation)
        if asked is None:
            return _TEXTS.matches(value, lists, relation)
        return tuple(i for i, names in enumerate(lists) if any(self._is_equal(value, name, asked) for name in names))

    def count(self, matches: Sequence[tuple[int, ...]]) -> int:
        """Return the size of a maximum matching."""
        return most_pairs(matches)

    def score(self, predicted: Any, gold: Any, relation: str) -> Counts:
        """Return the counts of one row. Answers of one meaning count once."""
        asked = self._compared(relation)
        if asked is None:
            return _TEXTS.score(predicted, _alias_lists(gold), relation)
        first = (value[0] if isinstance(value, list) and value else value for value in predicted)
        answers = {meaning(text, asked) or text.strip(): text for text in first if isinstance(text, str)}
        return self.count([self.matches(text, gold, relation) for text in answers.values()]), len(answers), len(gold)

    def _compared(self, name: str) -> Relation | None:
        """Return a relation whose objects are not compared folded; None for any other."""
        asked = self.relations.get(name)
        return asked if asked and (asked.has_values() or asked.kind in self.exact) else None

    def _is_equal(self, value: str, name: str, relation: Relation) -> bool:
        given, true = meaning(value, relation), meaning(name, relation)
        if isinstance(given, Decimal) and isinstance(true, Decimal):
            relative, absolute = Decimal(str(relation.tolerance)), Decimal(str(relation.absolute_tolerance))
            return abs(given - true) <= max(relative * abs(true), absolute)
        if isinstance(given, PartialDate) and isinstance(true, PartialDate):
            precision = min(given.precision, true.precision)
            is_fine = precision == true.precision or self.coarser == "right"
            return is_fine and given.at(precision) == true.at(precision)
        return given is not None and given == true


def _alias_lists(gold: Sequence[Any]) -> list[Sequence[str]]:
    return [[names] if isinstance(names, str) else names for names in gold]


@lru_cache(maxsize=1 << 14)
def _quantity(text: str, unit: str | None) -> Decimal | None:
    """Return the number in a text, converted into a unit if the text names another one; None if there is none.

    Commas are read between thousands alone: "1,5" is no number.
    """
    text = text.strip().replace("\u2212", "-")
    if (found := _NUMBER.match(text)) is None:
        return None
    value, behind = Decimal(found[1].replace(",", "")), text[found.end() :]
    if not behind or folded_key(behind) == folded_key(unit or ""):
        return value
    own, stated = unit_of(unit), unit_at(behind, 0)
    if own is None or stated is None or stated.end < len(behind):
        return None
    made = (converted(value, one, own) for one in stated.units)
    return next((one for one in made if one is not None), None)


def meaning(text: str, relation: Relation) -> Decimal | PartialDate | str | None:
    """Return what a text means as an object of a relation; None if it is no number, or no date, as due."""
    if relation.kind == "date":
        return read_date(text)
    return _quantity(text, relation.unit) if relation.kind == "number" else text.strip()
