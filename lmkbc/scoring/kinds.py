"""Scorer by kinds of objects: quantities, dates and texts are compared by what they mean.

An edition without an official script has it. The scorers of the official scripts divide by the gold with its sign, so
that a gold of -38.83 accepts 5000, and a gold of 0 accepts nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
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
        lists, equal = _alias_lists(gold), self._comparison(relation)
        if equal is None:
            return _TEXTS.matches(value, lists, relation)
        return tuple(i for i, names in enumerate(lists) if any(equal(value, name) for name in names))

    def count(self, matches: Sequence[tuple[int, ...]]) -> int:
        """Return the size of a maximum matching."""
        return most_pairs(matches)

    def score(self, predicted: Any, gold: Any, relation: str) -> Counts:
        """Return the counts of one row. Answers of one meaning count once."""
        if self._comparison(relation) is None:
            return _TEXTS.score(predicted, _alias_lists(gold), relation)
        first = (value[0] if isinstance(value, list) and value else value for value in predicted)
        answers = {self.meaning(text, relation) or text.strip(): text for text in first if isinstance(text, str)}
        return self.count([self.matches(text, gold, relation) for text in answers.values()]), len(answers), len(gold)

    def meaning(self, text: str, relation: str) -> Decimal | PartialDate | str | None:
        """Return what a text means as an object of a relation; None if it is no number, or no date, as due."""
        asked = self.relations.get(relation)
        if asked is None or asked.kind not in ("number", "date"):
            return text.strip()
        return read_date(text) if asked.kind == "date" else quantity_in(text, asked.unit)

    def _comparison(self, relation: str) -> Callable[[str, str], bool] | None:
        """Return the test of an answer and a gold name of a relation; None if they are compared folded."""
        asked = self.relations.get(relation)
        if asked is None or not (asked.kind in self.exact or asked.has_values()):
            return None
        return partial(self._equal, asked)

    def _equal(self, relation: Relation, value: str, name: str) -> bool:
        if relation.kind == "number":
            return near(quantity_in(value, relation.unit), quantity_in(name, relation.unit), relation)
        if relation.kind == "date":
            return same_date(read_date(value), read_date(name), self.coarser)
        return value.strip() == name.strip()


def _alias_lists(gold: Sequence[Any]) -> list[Sequence[str]]:
    return [[names] if isinstance(names, str) else names for names in gold]


def quantity_in(text: str, unit: str | None) -> Decimal | None:
    """Return the number in a text, converted into a unit if the text names another one; None if there is none.

    Commas are read between thousands alone: "1,5" is no number.
    """
    text = text.strip().replace("\u2212", "-")
    if (found := _NUMBER.match(text)) is None:
        return None
    value = Decimal(found[1].replace(",", ""))
    if found.end() == len(text):
        return value
    own, stated = unit_of(unit), unit_at(text, found.end())
    if own is None:
        return value if folded_key(text[found.end() :]) == folded_key(unit or "") else None
    if stated is None or stated.end < len(text):
        return None
    made = (converted(value, one, own) for one in stated.units)
    return next((one for one in made if one is not None), None)


def near(value: Decimal | None, gold: Decimal | None, relation: Relation) -> bool:
    """Return whether a number is within a relation's tolerances of gold: the relative or the absolute one."""
    if value is None or gold is None:
        return False
    relative, absolute = Decimal(str(relation.tolerance)), Decimal(str(relation.absolute_tolerance))
    return abs(value - gold) <= max(relative * abs(gold), absolute)


def same_date(value: PartialDate | None, gold: PartialDate | None, coarser: Coarser) -> bool:
    """Return whether a date equals gold at the precision of gold, or, if coarser ones are right, at its own."""
    if value is None or gold is None or (value.precision < gold.precision and coarser == "wrong"):
        return False
    precision = min(value.precision, gold.precision)
    return value.at(precision) == gold.at(precision)
