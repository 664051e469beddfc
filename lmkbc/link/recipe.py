"""A recipe's table `link`: how names are linked, relation by relation, and which language model may be asked."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, get_args

from lmkbc.generate.access import StepModel, step_model
from lmkbc.generate.spec import check_names
from lmkbc.link import disambiguation
from lmkbc.link.ask_model import AskModel
from lmkbc.link.evidence import Search
from lmkbc.link.index import AliasIndex
from lmkbc.link.linker import Linker
from lmkbc.link.sources import open_search
from lmkbc.link.train_objects import TrainObjects
from lmkbc.link.wikidata import CONTACT
from lmkbc.names import as_qid
from lmkbc.notes import Notes
from lmkbc.relation import Relation
from lmkbc.run.base import Run

Its = TypeVar("Its")
Words = Mapping[str, tuple[str, ...]]
Evidence = Literal["train", "index", "fuzzy", "search", "variants", "head"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Linking:
    """Settings of linking, as a recipe's plain data.

    strategies, keywords: relation, by any edition's name, -> what `Linker` takes in place of its object type's own.
    default: the strategies of relations that are not named. ask: the model that the strategy "model" asks, by name or
    by its settings (`StepModel`). evidence: what is looked at, in this order: "train"
    objects, the alias "index", one typing error against these, the "search", and a search for other "variants" of a
    name that found nothing; or only for its "head", before a colon. "search" alone, with the default "first", is what
    the organisers' baselines do.
    typed: the relations whose names are searched for with a type word too, as in "Don River"; all that have such, if
    none are listed. searched: relation -> what is searched for in place of the bare {object}. known: relation -> word
    -> id, of a name that holds the word, case aside, and that nothing else links. unlinked: whether a name without a
    link is left out, or submitted as it is, which no scorer of ids takes for right.
    """

    strategies: Words = field(default_factory=dict)
    keywords: Words = field(default_factory=dict)
    default: tuple[str, ...] = ()
    ask: str | Mapping[str, Any] = ""
    evidence: tuple[Evidence, ...] = get_args(Evidence)[:-1]
    unlinked: Literal["drop", "name"] = "drop"
    typed: tuple[str, ...] | None = None
    searched: Mapping[str, str] = field(default_factory=dict)
    known: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """InputError for a strategy or a component that does not exist; ValueError for a model that is not named."""
        named = {f"strategies of {name}": strategies for name, strategies in self.strategies.items()}
        for what, strategies in (*named.items(), ("default", self.default)):
            disambiguation.check(strategies, what)
            if disambiguation.MODEL in strategies and not self.ask:
                raise ValueError(f"{what} asks a model: name it in link.ask")
        for name, template in self.searched.items():
            if "{object}" not in template:
                raise ValueError(f"searched.{name} is {template!r}: say with {{object}} where the name stands")
        for name, words in self.known.items():
            if wrong := next((qid for qid in words.values() if as_qid(qid) != qid), None):
                raise ValueError(f"known.{name} names {wrong!r}, which is no QID: write one like 'Q42'")
        self.model()

    def model(self) -> StepModel | None:
        """Return the model for the strategy "model"; None where the table names none."""
        return step_model(self.ask, "ask") if self.ask else None

    def check(self, relations: Mapping[str, Relation]) -> None:
        """InputError for a relation that does not exist. relations: all, by every name."""
        check_names(
            (*self.strategies, *self.keywords, *(self.typed or ()), *self.searched, *self.known), relations, "link"
        )

    def open(self, run: Run, notes: Notes, *, replayed: bool = False) -> Linker:
        """Links by train objects, then by the index where one is given, then by search, as the table says.

        The search is the recorded table, the cache, or Wikidata where a contact is set. replayed: recorded answers
        stand for models, so that one to choose among hits is asked only where it is given.
        """
        strategies, _ = self.of_edition(run.workspace.relations, run.relations)
        model = self.model() if any(disambiguation.MODEL in names for names in strategies.values()) else None
        if model and replayed and not model.is_given(run):
            notes.remark("no model is given that could choose among hits: the first that is left is the link")
            model = None
        search = None
        if "search" in self.evidence and (run.search_table or run.offline or os.environ.get(CONTACT)):
            search = open_search(run.search_table, offline=run.offline)
        index = AliasIndex(run.index) if run.index and "index" in self.evidence else None
        return self.linker(run, index, search, AskModel(model.open(run, notes), run.relations) if model else None)

    def linker(
        self, run: Run, index: AliasIndex | None, search: Search | None, ask: disambiguation.Ask | None = None
    ) -> Linker:
        """Return the linker that the table describes, with those of the given sources that its evidence names."""
        known, relations = run.workspace.relations, run.relations
        strategies, keywords = self.of_edition(known, relations)
        return Linker(
            relations,
            TrainObjects(run.train, relations) if "train" in self.evidence else None,
            index if "index" in self.evidence else None,
            search if "search" in self.evidence else None,
            strategies=strategies,
            keywords=keywords,
            fuzzy="fuzzy" in self.evidence,
            typed=None if self.typed is None else [*_own(dict.fromkeys(self.typed), known, relations)],
            variants="variants" in self.evidence,
            heads="head" in self.evidence,
            names_unlinked=self.unlinked == "name",
            searched=_own(self.searched, known, relations),
            known=_own(self.known, known, relations),
            ask=ask,
        )

    def of_edition(self, known: Mapping[str, Relation], relations: Mapping[str, Relation]) -> tuple[Words, Words]:
        """Strategies and keywords of an edition's relations, by the edition's names."""
        usual = dict.fromkeys(relations if self.default else (), self.default)
        return usual | _own(self.strategies, known, relations), _own(self.keywords, known, relations)


def _own(words: Mapping[str, Its], known: Mapping[str, Relation], relations: Mapping[str, Relation]) -> dict[str, Its]:
    """Return the values of relations under an edition's names; the given keys are any names of relations."""
    own = {known[name].name: listed for name, listed in words.items()}
    return {name: own[relation.name] for name, relation in relations.items() if relation.name in own}
