"""Give objects tokens whose rare pieces weigh more, and drop objects of another type (Yang et al., LM-KBC 2023).

The type of a name is known from an index. A candidate is kept if the index lacks its name, or lacks the classes of its
name.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from lmkbc.errors import InputError
from lmkbc.link.cleaning import Cleaning
from lmkbc.link.hits import bundled, is_page
from lmkbc.link.index import AliasIndex
from lmkbc.masked.backbone import Backbone
from lmkbc.masked.cloze_settings import ProbeSettings, for_relation, is_number
from lmkbc.masked.vocabulary import expand, piece_counts
from lmkbc.relation import Relation
from lmkbc.session.run import Run
from lmkbc.types import Candidate, CandidateSet


@dataclass(frozen=True, kw_only=True)
class TypeCleaning(Cleaning):
    """Cleaning as in other systems, without objects that the index knows only as entities of other types."""

    REPLACES: ClassVar[tuple[str, ...]] = ("types",)

    def open(self, run: Run) -> TypeFilter:
        """Return the filter. Raise InputError if the run has no index."""
        if run.index is None:
            raise InputError(
                "the recipe drops objects of another kind, which needs an index: name one with --index "
                "('lmkbc link build' makes it), or leave component out of [clean] in the recipe"
            )
        return TypeFilter(run.relations, AliasIndex(run.index))


class TypeFilter:
    """Keeps candidates that may have the relation's object type. relations: relations by every spelling in queries."""

    def __init__(self, relations: Mapping[str, Relation], index: AliasIndex) -> None:
        self._relations, self._index = relations, index
        self._fits: dict[tuple[str, str], bool] = {}

    def keep(self, candidates: CandidateSet) -> CandidateSet:
        """Return the set without candidates that the index knows only as entities of other types."""
        relation = self._relations[candidates.query.relation]
        wanted = relation.object_type.qid
        if not relation.has_entities() or wanted not in bundled().types:
            return candidates
        return candidates.without(lambda candidate: not self._may_be(candidate, wanted), "type")

    def _may_be(self, candidate: Candidate, wanted: str) -> bool:
        key = candidate.id or candidate.text, wanted
        if key not in self._fits:
            self._fits[key] = self._looked_up(candidate.id, candidate.text, wanted)
        return self._fits[key]

    def _looked_up(self, qid: str | None, text: str, wanted: str) -> bool:
        """Return whether an entity may have a type by its classes in the index; without an id, look up the name."""
        entity = self._index.entities([qid]).get(qid) if qid else None
        hits = [entity] if entity else self._index.exact(text) if text else ()
        classes = [hit.classes for hit in hits if entity or not is_page(hit)]
        return not classes or any(not known_as or bundled().fits(known_as, wanted) for known_as in classes)


@dataclass(frozen=True, kw_only=True)
class RecodedProbe(ProbeSettings):
    """Clozes whose answers are new tokens, of which rare pieces weigh more.

    digits: whether numbers must be digits. maximum: table of the largest numbers.
    """

    REPLACES: ClassVar[tuple[str, ...]] = ("objects", "compose")

    digits: bool = False
    maximum: Mapping[str, float] = field(default_factory=dict)

    def prepared(self, backbone: Backbone, names: Collection[str]) -> Backbone:
        """Return the model with a token for each name."""
        return expand(backbone, names, piece_counts(backbone, names))

    def objects_of(self, word: str, relation: Relation) -> tuple[str, ...]:
        """Return the objects for which a word may stand; none for too large a number, or for one in words."""
        if self.digits and relation.has_numbers() and not is_number(word):
            return ()
        largest = for_relation(self.maximum, relation, math.inf)
        return () if is_number(word) and int(word) > largest else super().objects_of(word, relation)


COMPONENTS = {"yang23/types": TypeCleaning, "yang23/probe": RecodedProbe}
