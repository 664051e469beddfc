"""Tell elements by their first letters and by the compound's name, and ask for a country first (Fang et al. 2022)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from lmkbc.errors import InputError, refuse
from lmkbc.masked.cloze_settings import ProbeSettings, for_relation, refuse_share, values_of
from lmkbc.names import folded_key
from lmkbc.relation import FirstCloze, Relation

_WORD = re.compile(r"[^\W\d_]{2,}")


@dataclass(frozen=True, kw_only=True)
class StemProbe(ProbeSettings):
    """Clozes of relations with a closed list of names.

    stems: number of first letters by which names of the relation's closed list are recognised.
    name_words: whether to ask the words of the subject's name too, and the score of an object that one of them names.
    """

    stems: Mapping[str, int] = field(default_factory=dict)
    name_words: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ValueError for a wrong value."""
        ProbeSettings.__post_init__(self)
        refuse(*(refuse_share("name_words", value) for value in values_of(self.name_words)))

    def check(self, relation: Relation) -> None:
        """Raise InputError for a relation without a closed list, and for stems without a letter."""
        for setting in ("stems", "name_words"):
            if for_relation(getattr(self, setting), relation, None) is not None and not relation.shape.closed:
                raise InputError(f"probe.{setting} names {relation.name}, whose shape lists no closed names")
        if (letters := for_relation(self.stems, relation, 1)) < 1:
            raise InputError(f"probe.stems of {relation.name} is {letters}: give a number of letters, at least 1")

    def subject_words(self, subject: str, relation: Relation) -> tuple[str, ...]:
        """Return the words of a subject's name that are asked too; () for a single word."""
        words = tuple(dict.fromkeys(_WORD.findall(subject)))
        return words if len(words) > 1 and for_relation(self.name_words, relation, None) is not None else ()

    def named_in(self, subject: str, relation: Relation) -> Mapping[str, float]:
        """Return the objects that words of the subject's name name."""
        score = for_relation(self.name_words, relation, 0.0)
        words = _WORD.findall(subject) if score else ()
        return {name: score for word in words for name in self.objects_of(word, relation)}

    def objects_of(self, word: str, relation: Relation) -> tuple[str, ...]:
        """Return the objects for which a word may stand.

        For example, the model's "sulfide" and a variant "sulfuric" both give "sulfur". Of names with the same first
        letters, the first listed counts. Shorter names have no stem.
        """
        letters = for_relation(self.stems, relation, 0)
        if (found := super().objects_of(word, relation)) or not letters:
            return found
        stem = folded_key(word)[:letters]
        closed = relation.shape.closed.items()
        keys = ((key, name) for name, variants in closed for key in map(folded_key, (name, *variants)))
        named = next((name for key, name in keys if len(key) >= letters and key[:letters] == stem), None)
        return () if named is None else (named,)


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedPrecondition(FirstCloze):
    """A precondition whose answers are the names in train of the entities of a Wikidata class. type: the class."""

    type: str

    @property
    def compares(self) -> bool:
        """Return whether there are answers to compare."""
        return bool(self.type) and not self.answers

    def words(self, named: Callable[[str], Sequence[str]]) -> Sequence[str]:
        """Return the answers that are compared."""
        return named(self.type)


COMPONENTS = {"fang22/probe": StemProbe, "fang22/precondition": TypedPrecondition}
