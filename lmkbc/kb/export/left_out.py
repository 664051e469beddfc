"""Facts that a format cannot hold. They are left out of an export, and counted by reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from lmkbc.errors import InputError
from lmkbc.kb.base.fact_row import FactRow
from lmkbc.kinds.kind import Exported, LeftOutError, kind_of
from lmkbc.kinds.url import is_address
from lmkbc.names import as_qid

Written = TypeVar("Written")


def exported(fact: FactRow) -> Exported | None:
    """Return the object of a fact as exports write it; None for an entity. LeftOutError if it cannot be written.

    InputError if the relation's unit and the item of its unit have different dimensions.
    """
    kind = kind_of(fact.about)
    if kind.is_entity:
        return None
    try:
        return kind.exported(fact.literal if kind.has_values else fact.object, fact.about)
    except InputError as error:
        raise InputError(f"relation {fact.relation}: {error}") from None


def cited(fact: FactRow) -> tuple[str, str] | None:
    """Return the source of a fact that a person decided: Wikidata's property of references, and an item or an address.

    None without a decision, and for a source of another kind.
    """
    source = fact.source if fact.reviewed_by and fact.source else ""
    if as_qid(source) == source:
        return "P248", source
    return ("P854", source) if is_address(source) else None


@dataclass(slots=True)
class ExportTally:
    """Counts of an export: facts that were written, and facts that were left out, by reason."""

    facts: int = 0
    left_out: Counter[str] = field(default_factory=Counter)

    def written(self, facts: Iterable[FactRow], write: Callable[[FactRow], Written]) -> Iterator[Written]:
        """Yield what a function makes of each fact. A fact for which it raises LeftOutError is counted and skipped."""
        for fact in facts:
            try:
                made = write(fact)
            except LeftOutError as reason:
                self.left_out[str(reason)] += 1
            else:
                self.facts += 1
                yield made
