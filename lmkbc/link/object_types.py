"""Knowledge about types of objects, from object_types.toml: classes, known names, strategies of choice."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import msgspec

from lmkbc.link.wordings import key

BUNDLED = Path(__file__).with_name("object_types.toml")
DEFAULT_STRATEGIES = ("class", "first")


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectType:
    """A type of object. known: name -> QID. strategies: see `disambiguation.STRATEGIES`.

    strict: whether a hit of another class is refused. If not, it is the last resort.
    """

    qid: str
    subclasses: tuple[str, ...] = ()
    strategies: tuple[str, ...] = DEFAULT_STRATEGIES
    keywords: tuple[str, ...] = ()
    known: Mapping[str, str] = field(default_factory=dict)
    strict: bool = False

    def __post_init__(self) -> None:
        """Fold the names in `known` to their keys."""
        object.__setattr__(self, "known", {key(name): qid for name, qid in self.known.items()})


@dataclass(frozen=True, slots=True)
class ObjectTypes:
    """The types of objects by Wikidata class, and the small class tree that they form."""

    types: Mapping[str, ObjectType]
    _below: dict[str, frozenset[str]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def get(self, qid: str) -> ObjectType:
        """Return the type of a class, with default settings if the table lacks it."""
        return self.types.get(qid) or ObjectType(qid=qid)

    def fits(self, classes: Iterable[str], wanted: str) -> bool:
        """Return whether any of the classes is the wanted one or lies below it."""
        return not self.below(wanted).isdisjoint(classes)

    def below(self, wanted: str) -> frozenset[str]:
        """Return a class and all classes that the table places below it."""
        if wanted not in self._below:  # called for every name that is linked
            accepted, rest = {wanted}, [wanted]
            while rest:
                below = [qid for qid in self.get(rest.pop()).subclasses if qid not in accepted]
                accepted.update(below)
                rest += below
            self._below[wanted] = frozenset(accepted)
        return self._below[wanted]

    def kin(self, first: str, second: str) -> bool:
        """Return whether two classes are the same, or one lies below the other."""
        return self.fits((first,), second) or self.fits((second,), first)


@cache
def bundled() -> ObjectTypes:
    """Return the table that comes with the package."""
    tables = tomllib.loads(BUNDLED.read_text())
    return ObjectTypes({qid: msgspec.convert({"qid": qid, **table}, ObjectType) for qid, table in tables.items()})
