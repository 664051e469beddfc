"""What this system alone does (LM-KBC 2025): a person's name is not short, and holds none of some words."""

from __future__ import annotations

from dataclasses import dataclass

from lmkbc.link.cleaning import NameShape
from lmkbc.names import folded_key


@dataclass(frozen=True, kw_only=True)
class WordedShape(NameShape):
    """The shape of a name, with two bounds more.

    shortest: fewest characters.
    without: words, in any case, that it never holds.
    """

    shortest: int = 1
    without: tuple[str, ...] = ()

    def fits(self, name: str) -> bool:
        """Return whether a name has the shape."""
        without = set(map(folded_key, self.without))
        return super().fits(name) and len(name) >= self.shortest and without.isdisjoint(folded_key(name).split())


COMPONENTS = {"jhh25/shape": WordedShape}
