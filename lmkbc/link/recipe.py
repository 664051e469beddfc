"""A recipe's table `link`: how names are linked, relation by relation, and which language model may be asked."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lmkbc.generate.completer import CompleterSpec, completer
from lmkbc.generate.spec import check_names
from lmkbc.link import disambiguation
from lmkbc.link.ask_model import AskModel
from lmkbc.link.index import AliasIndex
from lmkbc.link.linker import Linker
from lmkbc.link.sources import open_search
from lmkbc.link.train_objects import TrainObjects
from lmkbc.link.wikidata import CONTACT
from lmkbc.relation import Relation
from lmkbc.run import Run
from lmkbc.types import Notes

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

    def __post_init__(self) -> None:
        """InputError for a strategy or a component that does not exist; ValueError for a model that is not named."""
        named = {f"strategies of {name}": strategies for name, strategies in self.strategies.items()}
        for what, strategies in (*named.items(), ("default", self.default)):
            disambiguation.check(strategies, what)
            if disambiguation.MODEL in strategies and not self.ask:
                raise ValueError(f"{what} asks a model: name its component and model in link.ask")
        self.model()

    def model(self) -> CompleterSpec | None:
        """The model that the strategy "model" asks, where one is named."""
        return completer(self.ask, "ask") if self.ask else None

    def check(self, relations: Mapping[str, Relation]) -> None:
        """InputError for a relation that does not exist. relations: all, by every name."""
        check_names((*self.strategies, *self.keywords), relations, "link")

    def open(self, run: Run, notes: Notes) -> Linker:
        """Links by train objects, then by the index where one is given, then by search, as the table says.

        The search is the recorded table, the cache, or Wikidata where a contact is set.
        """
        strategies, keywords = self.of_edition(run.workspace.relations, run.relations)
        model = self.model() if any(disambiguation.MODEL in names for names in strategies.values()) else None
        search = None
        if run.search_table or run.offline or os.environ.get(CONTACT):
            search = open_search(run.search_table, offline=run.offline)
        return Linker(
            run.relations,
            TrainObjects(run.train, run.relations),
            AliasIndex(run.index) if run.index else None,
            search,
            strategies=strategies,
            keywords=keywords,
            ask=AskModel(model.open(run, notes), run.relations) if model else None,
        )

    def of_edition(self, known: Mapping[str, Relation], relations: Mapping[str, Relation]) -> tuple[Words, Words]:
        """Strategies and keywords of an edition's relations, by the edition's names."""
        strategies = _own(self.strategies, known, relations)
        if self.default:
            strategies = dict.fromkeys(relations, self.default) | strategies
        return strategies, _own(self.keywords, known, relations)


def _own(words: Words, known: Mapping[str, Relation], relations: Mapping[str, Relation]) -> dict[str, tuple[str, ...]]:
    own = {known[name].name: listed for name, listed in words.items()}
    return {name: own[relation.name] for name, relation in relations.items() if relation.name in own}
