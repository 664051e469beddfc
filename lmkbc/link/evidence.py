"""Types of linking: hits, links, and the protocol of a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


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
