"""Names of a closed list by their first letters: a model's "sulfide" and a name's "sulfuric" both say "sulfur"."""

from __future__ import annotations

from lmkbc.errors import InputError
from lmkbc.names import folded_key
from lmkbc.relation import Relation


class Stems:
    """The names that a relation's shape lists, by so many first letters (Fang et al. 2022: four, of elements).

    Of names that begin alike, the first listed is meant; shorter ones have no stem. InputError without a closed list.
    """

    def __init__(self, relation: Relation, letters: int) -> None:
        if not relation.shape.closed:
            raise InputError(f"probe.stems names {relation.name}, whose shape lists no closed names: leave it out")
        if letters < 1:
            raise InputError(f"probe.stems of {relation.name} is {letters}: give a number of letters, at least 1")
        self._letters = letters
        self._names: dict[str, str] = {}
        for name, variants in relation.shape.closed.items():
            for key in map(folded_key, (name, *variants)):
                if len(key) >= letters:
                    self._names.setdefault(key[:letters], name)

    def find(self, word: str) -> str | None:
        """The name that begins as a word does."""
        return self._names.get(folded_key(word)[: self._letters])
