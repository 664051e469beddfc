"""A subset of a split: the queries of some relations, at most a given number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import TypeVar

from lmkbc.edition import Edition
from lmkbc.errors import InputError, OptionError, did_you_mean
from lmkbc.workspace import Workspace

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Subset:
    """A subset of a split's queries.

    relations: by the edition's names; empty for all. limit: number of queries, from the first; None for all. within:
    other subsets that hold its queries too; the limit is of these.
    """

    relations: frozenset[str] = frozenset()
    limit: int | None = None
    within: tuple[Subset, ...] = ()

    @classmethod
    def of(cls, edition: Edition, relations: Sequence[str] | str | None, limit: int | None) -> Subset:
        """Return the subset of relations (by any of their names) and a limit.

        InputError for a relation not in the edition.
        """
        if limit is not None and limit < 1:
            raise OptionError("limit", f"is {limit}: give at least one query")
        chosen = {}
        for name in names_of(relations):
            if not (asked := edition.spelt(name)):
                hint = did_you_mean(name, edition.relations)
                raise InputError(f"edition {edition.name} asks for no relation {name!r}: {hint}")
            chosen[asked] = name
        return cls(frozenset(chosen), limit)

    @property
    def is_whole(self) -> bool:
        """Return whether the subset is the whole split."""
        return not self.relations and self.limit is None and not self.within

    def inside(self, others: Iterable[Subset]) -> Subset:
        """Return the subset of the queries that all others hold, which are within nothing themselves."""
        return replace(self, within=tuple(dict.fromkeys(one for one in others if not one.is_whole)))

    @property
    def words(self) -> str:
        """Return its relations and its least limit in words; "" for the whole split."""
        parts = (*self.within, self)
        names = (", ".join(sorted(part.relations)) for part in parts)
        least = min((part.limit for part in parts if part.limit is not None), default=0)
        return "; ".join(dict.fromkeys(filter(None, (*names, f"the first {least}" * bool(least)))))

    @property
    def suffix(self) -> str:
        """Return the end of the directory name for a run of the subset, as in `-hasArea-first10`."""
        named = "".join(f"-{name}" for name in sorted(self.relations))
        return named + ("" if self.limit is None else f"-first{self.limit}")

    def holds(self, relation: str) -> bool:
        """Return whether a relation's queries are in the subset."""
        own = not self.relations or relation in self.relations
        return own and all(part.holds(relation) for part in self.within)

    def rows(self, rows: Iterable[Row], relation: Callable[[Row], str]) -> Iterator[Row]:
        """Yield the rows of the subset, in order."""
        within = [part._counting() for part in self.within]
        own = (row for row in rows if sum(has(relation(row)) for has in within) == len(within))
        return islice((row for row in own if self.holds(relation(row))), self.limit)

    def _counting(self) -> Callable[[str], bool]:
        """Return a function that is given the relation of each row, in order, and says whether the row is held."""
        places = count()
        return lambda relation: self.holds(relation) and (self.limit is None or next(places) < self.limit)


WHOLE = Subset()


def names_of(given: Sequence[str] | str | None) -> Sequence[str]:
    """Return one name, several, or none as a sequence."""
    return () if given is None else (given,) if isinstance(given, str) else tuple(given)


def own_names(space: Workspace, names: Sequence[str]) -> Sequence[str]:
    """Return the own name of each relation that the workspace has by any of its names, else the name as it is."""
    return [space.relations[name].name if name in space.relations else name for name in names]
