"""A recipe's table `link`: how names are linked, per relation, and which language model may be asked."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, get_args

from lmkbc.generate.access import StepModel, step_model
from lmkbc.generate.spec import check_names
from lmkbc.link import disambiguation
from lmkbc.link.evidence import Search
from lmkbc.link.index import AliasIndex
from lmkbc.link.linker import Linker
from lmkbc.link.search import open_search
from lmkbc.link.train_objects import TrainObjects
from lmkbc.link.wikidata import CONTACT
from lmkbc.names import as_qid
from lmkbc.notes import Notes
from lmkbc.relation import Relation
from lmkbc.run.run import Run

Its = TypeVar("Its")
Words = Mapping[str, tuple[str, ...]]
Evidence = Literal["train", "index", "fuzzy", "search", "variants", "head"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Linking:
    """Settings of linking, as a recipe's plain data.

    strategies, keywords: relation (by any edition's name) -> values that replace those of its object type.
    default: strategies of relations that are not listed.
    ask: the model for the strategy "model", by name or by its settings (`StepModel`).
    evidence: what is used, see below.
    unlinked: whether a name without a link is dropped, or submitted as it is ("name"). A scorer of ids counts such a
    name as wrong.
    typed: relations whose names are also searched with a type word, as in "Don River"; None for all that have type
    words.
    searched: relation -> template of the searched text, in place of "{object}".
    known: relation -> word -> id, for a name that holds the word (in any case) and that nothing else links.

    Evidence is used in this order: "train" objects, the alias "index", and names with one typing error against these
    ("fuzzy"). The "search" follows, and a search for other "variants" of a name without a match. The value "head"
    searches only the part of a name before its colon. The organisers' baselines use "search" alone, with the default
    strategy "first".
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
        """Check the settings. InputError for an unknown strategy or component; ValueError for a missing model."""
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
        """Return the model for the strategy "model"; None if the table names none."""
        return step_model(self.ask, "ask") if self.ask else None

    def check(self, relations: Mapping[str, Relation]) -> None:
        """Raise InputError for a relation that does not exist. relations: all relations, by every name."""
        check_names(
            (*self.strategies, *self.keywords, *(self.typed or ()), *self.searched, *self.known), relations, "link"
        )

    def open(self, run: Run, notes: Notes, *, replayed: bool = False) -> Linker:
        """Return the linker for a run, with train objects, the index if one is given, and the search.

        The search is the recorded table, the cache, or Wikidata if a contact is set. replayed: whether recorded answers
        replace models. A model that chooses among hits is then used only if one is given.
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
        ask = disambiguation.AskModel(model.open(run, notes), run.relations) if model else None
        return self.linker(run, index, search, ask)

    def linker(
        self, run: Run, index: AliasIndex | None, search: Search | None, ask: disambiguation.Ask | None = None
    ) -> Linker:
        """Return the linker of the table. Sources that `evidence` does not name are left out."""
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
        """Return strategies and keywords by the names of an edition's relations."""
        usual = dict.fromkeys(relations if self.default else (), self.default)
        return usual | _own(self.strategies, known, relations), _own(self.keywords, known, relations)


def _own(words: Mapping[str, Its], known: Mapping[str, Relation], relations: Mapping[str, Relation]) -> dict[str, Its]:
    """Return the values by an edition's names of relations. words: values by any names of relations."""
    by_name = {known[name].name: listed for name, listed in words.items()}
    return {name: by_name[relation.name] for name, relation in relations.items() if relation.name in by_name}
