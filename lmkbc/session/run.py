"""A run: the user's options, and what its steps share: data, loaded models, budgets and notes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from lmkbc.edition import Edition
from lmkbc.files.places import RecordedFile
from lmkbc.models.answers import CallCounter, DryStore, Store
from lmkbc.models.budget import Budget
from lmkbc.models.store_place import default_place
from lmkbc.progress import Report, silent
from lmkbc.registry import BACK_ENDS
from lmkbc.relation import Relation
from lmkbc.session.options import Servers
from lmkbc.session.quotes import Quoting
from lmkbc.session.statements import Statements
from lmkbc.types import Example, Query
from lmkbc.workspace import Workspace

Loaded = TypeVar("Loaded")


@dataclass(frozen=True, kw_only=True)
class ModelRun:
    """State shared by all steps that ask language models: options of the user, and opened models."""

    model: str | None = None
    backend: str | None = None
    offline: bool = False
    servers: Servers = field(default_factory=Servers)
    budgets: list[Budget] = field(default_factory=list, repr=False, compare=False)
    """Budgets of all clients of servers. A limit holds for their sum."""
    in_memory: dict[Hashable, Any] = field(default_factory=dict, repr=False, compare=False)
    """Loaded models and queries, so that a second step does not load them again."""
    computed: dict[str, Mapping[str, Any]] = field(default_factory=dict, repr=False, compare=False)
    """Model -> how it computes on this machine: device, type, instructions, threads."""

    listings: dict[str, Sequence[str]] = field(default_factory=dict, repr=False, compare=False)
    """Server -> the models that it lists, after the first request."""

    renewed: set[str] = field(default_factory=set, repr=False, compare=False)
    """Keys of answers that were requested again."""

    report: Report = field(default=silent, repr=False, compare=False)
    """Callback for progress, called while models are loaded, and by generators with a long preparation."""

    dry: CallCounter | None = None
    """In a dry run: counter of the requests that would be sent."""

    def __post_init__(self) -> None:
        """Check the back end. InputError for an unknown one."""
        if self.backend is not None:
            BACK_ENDS.check(self.backend)

    def loaded(self, key: Hashable, load: Callable[[], Loaded]) -> Loaded:
        """Return what a key stands for. It is loaded on first use."""
        if key not in self.in_memory:
            self.in_memory[key] = load()
        loaded: Loaded = self.in_memory[key]
        return loaded

    def store(self) -> Store:
        """Return the store of models' answers: the user's, else the default one."""
        place = default_place(self.servers.get("store"), offline=self.offline and self.dry is None)
        if self.dry is not None:
            return DryStore(place, self.dry, fresh=self.servers.get("fresh", False))
        return Store(place, self.renewed if self.servers.get("fresh") else None)


@dataclass(frozen=True, kw_only=True)
class Run(ModelRun):
    """Context of a run's steps: the edition, its data, and the user's options.

    answers: recorded files that replace the model of a generator; None if the model is asked.
    empty: what an empty text in recorded files means, of `EMPTY_TEXTS`; None for the usual meaning.
    split: the split that is asked; "" for queries of the user's own.
    learn_from: the splits whose labelled rows are learned from; None for the usual ones. If there are none, train is
    learned from, and what its rows state is not kept.
    """

    workspace: Workspace
    edition: Edition
    files: tuple[Path, ...] = ()
    answers: tuple[RecordedFile, ...] | None = None
    empty: str | None = None
    search_table: Path | None = None
    api_url: str | None = None
    documents: Quoting | None = None
    index: Path | None = None
    cache: Path | None = None
    split: str = ""
    learn_from: tuple[str, ...] | None = None
    spellings: Mapping[str, str] | None = None
    """Spelling -> canonical name, if a recipe replaces those of the relations."""

    @cached_property
    def relations(self) -> dict[str, Relation]:
        """Return the edition's relations, by their names in the edition, their objects spelled as train spells them."""
        relations = {name: self.workspace.relation(name) for name in self.edition.relations}
        if self.spellings is not None:
            shapes = {name: replace(one.shape, variants=self.spellings) for name, one in relations.items()}
        elif any(one.shape.variants for one in relations.values()) and self.workspace.has_data(self.edition):
            names = defaultdict[str, set[str]](set)
            for example in self.train:
                names[example.query.relation].update(name for gold in example.objects for name in gold.names)
            shapes = {name: one.shape.spelled_as(names[name]) for name, one in relations.items()}
        else:
            return relations
        return {name: replace(one, shape=shapes[name]) for name, one in relations.items()}

    @property
    def queries(self) -> list[Query]:
        """Return the queries of the split. They are read once, since they may be millions."""
        key = ("queries", self.edition.name, self.split)
        return self.loaded(key, lambda: self.workspace.queries(self.edition, self.split))

    @cached_property
    def train(self) -> list[Example]:
        """Return the train split: examples of prompts, and names for links. Relations of one's own need none."""
        return self.workspace.examples(self.edition, "train") if self.has_train else []

    @property
    def has_train(self) -> bool:
        """Return whether there are labelled rows to learn from. InputError if published ones are not here."""
        return self.edition.splits["train"] is not None or self.workspace.has_data(self.edition)

    @property
    def labelled_splits(self) -> tuple[str, ...]:
        """Return the splits to learn from: train, and the held-out split, if it is here, for test.

        There are none for relations of one's own without labelled rows.
        """
        if not self.has_train:
            return ()
        if self.learn_from is not None:
            return self.learn_from or ("train",)
        more = self.split == "test" and self.workspace.has_data(self.edition, self.edition.held_out)
        return ("train", self.edition.held_out) if more else ("train",)

    @cached_property
    def labelled_rows(self) -> dict[str, list[Example]]:
        """Return split -> the rows to learn from; for test, none is about a query that is asked."""
        rows = {"train": self.train}
        rows |= {name: self.workspace.examples(self.edition, name) for name in self.labelled_splits if name not in rows}
        asked = set[tuple[str, str]]()
        if self.split == "test":
            labelled = {pair for own in rows.values() for row in own for pair in row.query.pairs}
            asked = {pair for query in self.queries for pair in query.pairs if pair in labelled}
        return {name: [row for row in own if asked.isdisjoint(row.query.pairs)] for name, own in rows.items()}

    @cached_property
    def labelled(self) -> list[Example]:
        """Return the rows to learn from, of all splits."""
        return [*chain.from_iterable(self.labelled_rows.values())]

    @cached_property
    def statements(self) -> Statements:
        """Return the facts that the rows to learn from state."""
        return Statements(self.labelled_rows, self.relations)
