"""Read a word as another one (Ning and Celebi, LM-KBC 2022)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lmkbc.masked.cloze_settings import ProbeSettings, for_relation
from lmkbc.relation import Relation


@dataclass(frozen=True, kw_only=True)
class VariantProbe(ProbeSettings):
    """Clozes with answers of which some stand for others. variants: table of words and their meanings."""

    variants: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def objects_of(self, word: str, relation: Relation) -> tuple[str, ...]:
        """Return the objects for which a word may stand, as an answer to a relation."""
        variants: Mapping[str, str] = for_relation(self.variants, relation, {})
        return super().objects_of(variants.get(word.casefold(), word), relation)


COMPONENTS = {"ning22/probe": VariantProbe}
