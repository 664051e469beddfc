"""The objects that clozes may be answered with: the model's words, train's objects, or a list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lmkbc.errors import InputError
from lmkbc.models.masked.words import Words
from lmkbc.relation import Relation
from lmkbc.types import Example, Query


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Names with the token ids of each."""

    names: tuple[str, ...]
    ids: tuple[tuple[int, ...], ...]

    @property
    def longest(self) -> int:
        """The most tokens of a name."""
        return max(map(len, self.ids))

    @classmethod
    def of_words(cls, words: Words) -> Lexicon:
        """Every whole word of the vocabulary."""
        if not words.plain:
            raise InputError("the model's vocabulary holds no whole word: nothing is left to propose")
        return cls(tuple(words.plain.values()), tuple((index,) for index in words.plain))

    @classmethod
    def of_names(cls, words: Words, names: Iterable[str], *, several: bool = False) -> Lexicon:
        """The names that are one token, or `several` known ones."""
        known: dict[str, tuple[int, ...]] = {}
        for name in names:
            single = words.single(name)
            if single is not None:
                known[name] = (single,)
            elif several and (ids := words.ids(name)) and words.unknown not in ids:
                known[name] = tuple(ids)
        return cls(tuple(known), tuple(known.values()))


def train_names(rows: Sequence[Example]) -> dict[str, list[Query]]:
    """The preferred name of each object in a relation's train rows -> the queries that it answers."""
    named: dict[str, list[Query]] = {}
    for row in rows:
        for name in row.names:
            named.setdefault(name, []).append(row.query)
    return named


def names_of_type(rows: Sequence[Example], relations: Mapping[str, Relation], qid: str) -> list[str]:
    """Every name that labelled rows give to things of a Wikidata class, as subjects or as objects."""
    names: dict[str, None] = {}
    for row in rows:
        relation = relations[row.query.relation]
        if relation.subject_type.qid == qid:
            names[row.query.subject] = None
        if relation.object_type.qid == qid:
            names |= dict.fromkeys(name for gold in row.objects for name in gold.names)
    return list(names)
