"""Entities that a text may mean, what a linker decides about them, and the types of objects."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Protocol

import msgspec

from lmkbc.names import name_key, spelling

PAGE, NAME = "Q17442446", "Q82799"
"""Classes of Wikimedia's own pages, such as lists and disambiguation pages, and of family and given names."""
_PAGE = re.compile(r"wikimedia (?:\w+ )*(?:page|list|list article|category|template|portal|module)\b", re.IGNORECASE)
"""Description of such a page, where its classes are unknown."""


@dataclass(frozen=True, slots=True)
class Hit:
    """An entity that a text may mean.

    classes: its P31 values and the classes above them, () if unknown. popularity: number of sitelinks. name: the label
    or alias that the text matched, "" if the source does not give it.
    """

    id: str
    label: str = ""
    description: str = ""
    classes: tuple[str, ...] = ()
    popularity: int = 0
    name: str = ""

    def is_spelt(self, text: str) -> bool:
        """Return whether a text is a name of the entity, case aside. A source without names finds such texts only."""
        return not self.name or spelling(self.name) == spelling(text)


@dataclass(frozen=True, slots=True)
class Link:
    """A decision of the linker: the id or None, its evidence, how it was chosen, and the text that was searched.

    evidence: given, literal, relation, type, known, index, fuzzy, search or re-search; "unlinked" if id is None, and
    "nothing" for an empty candidate. strategy: how the hit was chosen among `hits`, or why there is no link. open: hits
    among which a language model is still to choose. The link stands if the model names none.
    """

    id: str | None
    evidence: str
    strategy: str
    searched: str = ""
    hits: tuple[Hit, ...] = ()
    open: tuple[Hit, ...] = ()

    @property
    def ambiguous(self) -> bool:
        """Return whether there was a choice between several entities."""
        return len({hit.id for hit in self.hits}) > 1


class Search(Protocol):
    """Entity search in the way of Wikidata's, for batches of texts.

    knows_classes: whether its hits have classes. If not, and searching is free, a name is also searched with its type
    words, since nothing else separates a river from its namesakes.
    """

    knows_classes: bool

    def search(self, texts: Sequence[str]) -> Mapping[str, tuple[Hit, ...]]:
        """Return hits per text, best first; () for a text without hits. Case is ignored."""

    def entities(self, ids: Sequence[str], /) -> Mapping[str, Hit | None]:
        """Return the entity of each id, with redirects followed; None for no entity.

        Ids that cannot be checked are absent.
        """


BUNDLED = Path(__file__).with_name("object_types.toml")
DEFAULT_STRATEGIES = ("class", "first")


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectType:
    """A type of object. known: name -> QID. strategies: see `lmkbc.registry`.

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
        object.__setattr__(self, "known", {name_key(name): qid for name, qid in self.known.items()})


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


def is_page(hit: Hit) -> bool:
    """Return whether an entity stands for a page of a wiki. No name means such an entity."""
    return bundled().fits(hit.classes, PAGE) if hit.classes else _PAGE.match(hit.description) is not None
