"""A run: what the user gave, and what its steps share: data, loaded models, budgets, and notes beside the results."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from lmkbc.edition import Edition
from lmkbc.models.answers import FreshStore, Store
from lmkbc.models.budget import Budget
from lmkbc.models.dry import CallCounter, DryStore
from lmkbc.models.reference import Backend
from lmkbc.models.store_place import default_place
from lmkbc.progress import Report, silent
from lmkbc.relation import Relation
from lmkbc.run.options import Servers, check_servers
from lmkbc.types import Example
from lmkbc.workspace import Workspace

Loaded = TypeVar("Loaded")


class RecordedFile(NamedTuple):
    """Recorded answers for one generator. models: whose rows of the file count; None for all."""

    path: Path
    models: frozenset[str] | None = None


@dataclass(frozen=True, kw_only=True)
class ModelRun:
    """State shared by all steps that ask language models: options of the command line, and models opened so far."""

    model: str | None = None
    backend: Backend | None = None
    offline: bool = False
    servers: Servers = field(default_factory=Servers)
    budgets: list[Budget] = field(default_factory=list, repr=False, compare=False)
    """Budgets of all clients of servers: the limits hold for their sum."""
    models: dict[Hashable, Any] = field(default_factory=dict, repr=False, compare=False)
    """Loaded models, so that a second step with the same one does not load it again."""
    computed: dict[str, Mapping[str, Any]] = field(default_factory=dict, repr=False, compare=False)
    """Model -> in what it computes on this machine: device, type, instructions, threads."""

    listings: dict[str, Sequence[str]] = field(default_factory=dict, repr=False, compare=False)
    """Server -> the models that it says it serves, once it was asked."""

    renewed: set[str] = field(default_factory=set, repr=False, compare=False)
    """Keys of answers that were asked for anew."""

    dry: CallCounter | None = None
    """Counts what would be asked, where nothing is."""

    def __post_init__(self) -> None:
        """InputError for options of servers that make no sense."""
        check_servers(self.servers)

    def loaded(self, key: Hashable, load: Callable[[], Loaded]) -> Loaded:
        """Return the model of a key, loaded when it is first asked for."""
        if key not in self.models:
            self.models[key] = load()
        model: Loaded = self.models[key]
        return model

    def store(self) -> Store:
        """Return where models' answers are kept: as the command line says, else by default."""
        place = default_place(self.servers.get("store"), offline=self.offline and self.dry is None)
        if self.dry is not None:
            return DryStore(place, self.dry, fresh=self.servers.get("fresh", False))
        return FreshStore(place, self.renewed) if self.servers.get("fresh") else Store(place)


@dataclass(frozen=True, kw_only=True)
class Run(ModelRun):
    """Context of a run's steps: the edition, its data, and the options of the command line.

    answers: what stands for the model that a step would ask, of the files that were given; None where it is asked.
    """

    workspace: Workspace
    edition: Edition
    files: tuple[Path, ...] = ()
    answers: tuple[RecordedFile, ...] | None = None
    search_table: Path | None = None
    index: Path | None = None
    cache: Path | None = None
    spellings: Mapping[str, str] | None = None
    """Spelling -> name, where a recipe has its own in place of the relations'."""

    report: Report = field(default=silent, repr=False, compare=False)
    """Told by generators that work long before their first answer."""

    @cached_property
    def relations(self) -> dict[str, Relation]:
        """Return the edition's relations, by the names it gives them."""
        relations = {name: self.workspace.relation(name) for name in self.edition.relations}
        if self.spellings is None:
            return relations
        return {
            name: replace(relation, shape=replace(relation.shape, variants=self.spellings))
            for name, relation in relations.items()
        }

    @cached_property
    def train(self) -> list[Example]:
        """Return the train split."""
        return self.workspace.examples(self.edition, "train")
