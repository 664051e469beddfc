"""Types of linking: hits, the decision made from them, and the sources of hits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Hit:
    """An entity that a text may mean. `classes` are its P31 values and what lies above them, () where unknown.

    name: the label or alias that the text matched, "" where the source does not say. popularity: sitelinks.
    """

    id: str
    label: str = ""
    description: str = ""
    classes: tuple[str, ...] = ()
    popularity: int = 0
    name: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """Decision of the linker: the id or None, its evidence, the strategy of the choice, and the text searched for.

    evidence: given, literal, relation, type, known, index, fuzzy, search, re-search; "unlinked" when id is None and
    "nothing" for an empty candidate. strategy: how the hit was chosen among `hits`, or the reason for no link.
    open: hits among which a language model is still to choose; the link stands where it says nothing.
    """

    id: str | None
    evidence: str
    strategy: str
    searched: str = ""
    hits: tuple[Hit, ...] = ()
    open: tuple[Hit, ...] = ()

    @property
    def ambiguous(self) -> bool:
        """Return whether more than one entity was on offer."""
        return len({hit.id for hit in self.hits}) > 1


class Search(Protocol):
    """Anything that answers as Wikidata's entity search would, batch first.

    knows_classes: whether its hits carry classes. Where they do not, and asking is free, a name is also asked for with
    its type words, since nothing else tells a river from its namesakes.
    """

    knows_classes: bool

    def search(self, texts: Sequence[str]) -> Mapping[str, tuple[Hit, ...]]:
        """Return hits per text, best first; a text without hits maps to (). Case is not significant."""

    def entities(self, ids: Sequence[str], /) -> Mapping[str, Hit | None]:
        """Return what each id stands for (redirects followed), None for no entity; ids it cannot check are absent."""
