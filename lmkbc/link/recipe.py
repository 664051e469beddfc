"""A recipe's table `link`: how names are linked, relation by relation, and which language model may be asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lmkbc.errors import InputError, did_you_mean
from lmkbc.link import choose
from lmkbc.relation import Relation
from lmkbc.settings import checked

Words = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Linking:
    """How names are linked, as a recipe's plain data.

    strategies, keywords: relation, by any edition's name, -> what `Linker` takes in place of its object type's own.
    default: the strategies of relations that are not named. ask: the model that the strategy "model" asks: its
    component, "chat" or "causal", with that one's settings.
    """

    strategies: Words = field(default_factory=dict)
    keywords: Words = field(default_factory=dict)
    default: tuple[str, ...] = ()
    ask: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Mapping[str, Any], known: Mapping[str, Relation]) -> Linking:
        """Linking from a recipe's table. known: all relations, by every name. InputError for what makes no sense."""
        linking = checked(cls, table, "link")
        for name in (*linking.strategies, *linking.keywords):
            if name not in known:
                raise InputError(f"link names {name!r}, which is no relation: {did_you_mean(name, known)}")
        named = {f"strategies of {name}": strategies for name, strategies in linking.strategies.items()}
        for what, strategies in (*named.items(), ("default", linking.default)):
            choose.check(strategies, f"link: {what}")
            if choose.MODEL in strategies and not linking.ask:
                raise InputError(f"link: {what} asks a model: name its component and model in link.ask")
        return linking

    def of_edition(self, known: Mapping[str, Relation], relations: Mapping[str, Relation]) -> tuple[Words, Words]:
        """Strategies and keywords of an edition's relations, by the edition's names."""
        strategies = _own(self.strategies, known, relations)
        if self.default:
            strategies = dict.fromkeys(relations, self.default) | strategies
        return strategies, _own(self.keywords, known, relations)


def _own(words: Words, known: Mapping[str, Relation], relations: Mapping[str, Relation]) -> dict[str, tuple[str, ...]]:
    own = {known[name].name: said for name, said in words.items()}
    return {name: own[relation.name] for name, relation in relations.items() if relation.name in own}
