"""Tables `[[generate]]` of a recipe: a dataclass per generator, which checks its settings and opens the generator.

A generator is imported when a recipe names it, since some of them load large libraries.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

from lmkbc.errors import InputError, did_you_mean
from lmkbc.models.reference import ModelReference, flat
from lmkbc.notes import Notes
from lmkbc.registry import GENERATORS
from lmkbc.relation import Relation
from lmkbc.session.run import Run
from lmkbc.settings import checked
from lmkbc.types import CandidateSet, Generator, Query, Source


class Only:
    """Generator that is asked about some relations only; for others it is no source."""

    def __init__(self, generator: Generator, relations: Collection[str]) -> None:
        self._generator, self._relations = generator, frozenset(relations)

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """Yield the generator's sets, and a set without draws for each distinct query of another relation."""
        distinct = list(dict.fromkeys(queries))
        wanted = [query for query in distinct if query.relation in self._relations]
        yield from (CandidateSet(query, draws=()) for query in distinct if query.relation not in self._relations)
        if wanted:
            yield from self._generator.generate(wanted)


class _NamedGenerator:
    """Generator that counts as one model in pools: its source "prior" becomes "name#prior"."""

    def __init__(self, generator: Generator, name: str) -> None:
        self._generator, self._name = generator, name

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """Yield the generator's sets, with their sources renamed."""
        for candidates in self._generator.generate(queries):
            yield candidates.with_sources(lambda source: Source(self._name, str(source)))


Relations = Mapping[str, Relation]
"""Relations by all their names."""


class GeneratorQuestions(NamedTuple):
    """Questions of a generator to a language model. table: its settings. ask: function that asks about queries."""

    name: str
    table: object
    ask: Callable[[Sequence[Query]], Iterable[object]]


@dataclass(frozen=True, kw_only=True)
class GeneratorSpec(ABC):
    """Settings that the table of every generator may have.

    component: kind of generator.
    name: its name in pools and records.
    only: relations that it is asked about; () for all.
    """

    component: str
    name: str = ""
    only: tuple[str, ...] = ()

    def check(self, relations: Relations) -> None:
        """Raise InputError for an unknown relation."""
        check_names(self.only, relations, f"generator {self.component!r}: only")

    def check_files(self, relations: Relations) -> None:  # noqa: B027 -- most read none
        """Open the files that the table names. InputError for one that cannot be read; by default there is none."""

    @classmethod
    def reworded(cls, table: Mapping[str, Any], frames: str) -> Mapping[str, Any]:  # noqa: ARG003 -- subclasses use it
        """Return the table with its words replaced by a file of frames; unchanged if the generator has no prompts."""
        return table

    @property
    def called(self) -> tuple[str, ...]:
        """Return the names of the generator in files of recorded answers."""
        return (self.name or self.component, *filter(None, self.models))

    @property
    def models(self) -> tuple[str, ...]:
        """Return the models that the table asks, each once; "" for one that it leaves to --model or to a server."""
        named: Any = getattr(self, "model", {})
        return tuple(dict.fromkeys(name or "" for name in (named.values() if isinstance(named, Mapping) else [named])))

    @property
    def reads_files(self) -> bool:
        """Return whether it reads the files of a run itself, and not as recorded answers of its model."""
        return False

    @property
    def asks_model(self) -> bool:
        """Return whether it asks a model whose answers can be recorded."""
        return False

    @property
    def is_replayed(self) -> bool:
        """Return whether recorded answers can replace its model; they cannot if it reads the files itself."""
        return self.asks_model and not self.reads_files

    def claims(self, path: Path) -> bool:  # noqa: ARG002 -- subclasses use it
        """Return whether it reads a file of answers, of which there may be several, in a way of its own."""
        return False

    @property
    def learns(self) -> bool:
        """Return whether it learns from a run's labelled rows (`Run.labelled`)."""
        return False

    def whole(self) -> Iterator[GeneratorSpec]:
        """Yield the table itself, and the tables of the generators within it."""
        yield self

    def asked(self, run: Run) -> dict[str, Relation]:
        """Return the relations that it is asked about, by the edition's names."""
        return {name: relation for name, relation in run.relations.items() if relation.is_in(self.only)}

    @abstractmethod
    def open(self, run: Run, notes: Notes) -> Generator:
        """Return the generator. Raise InputError for something that the run lacks."""

    def sources(self, run: Run, notes: Notes) -> Iterator[tuple[str, Generator]]:
        """Yield the generators of the table with their names; by default there is one."""
        generator = self.open(run, notes)
        yield self.name or self.component, _NamedGenerator(generator, self.name) if self.name else generator

    def questions(self, run: Run, notes: Notes) -> Iterator[GeneratorQuestions]:  # noqa: ARG002 -- subclasses use them
        """Yield the questions to language models, so that a dry run can count them; by default none."""
        yield from ()

    def opened(self, run: Run, notes: Notes) -> Iterator[tuple[str, Generator]]:
        """Yield the generators with their names, limited to the relations that the table names."""
        for name, generator in self.sources(run, notes):
            yield name, Only(generator, self.asked(run)) if self.only else generator


def check_names(names: Sequence[str] | Mapping[str, Any], relations: Relations, what: str) -> None:
    """Raise InputError for a name that no relation has."""
    for name in names:
        if name not in relations:
            raise InputError(f"{what} names {name!r}, which is no relation: {did_you_mean(name, relations)}")


def specs(tables: Sequence[Mapping[str, Any]], frames: str = "") -> tuple[GeneratorSpec, ...]:
    """Return the checked tables of a recipe's generators. Raise InputError with the table's component and the setting.

    frames: file of frames that replaces those of all tables with prompts; if it has parts, each table gets its own
    part.
    """
    return tuple(_spec(source, "each" in table, frames) for table in tables for source in sources_of(table))


def _spec(table: Mapping[str, Any], one_of_each: bool, frames: str) -> GeneratorSpec:
    spec = spec_of(table.get("component"))
    if frames:
        table = spec.reworded(table, frames)
    what = f"generator {table['component']!r}" + (f", source {table['name']!r}" if one_of_each else "")
    return checked(spec, flat(table) if issubclass(spec, ModelReference) else table, what)


def spec_of(component: object) -> type[GeneratorSpec]:
    """Return the dataclass of a component, imported now. Raise InputError for an unknown one, and for another type."""
    return cast(type[GeneratorSpec], GENERATORS.get(component))


def converses(component: object) -> bool:
    """Return whether the generator of a name asks a language model. Nothing is loaded for it."""
    return GENERATORS.own.get(str(component)) == GENERATORS.own["chat"]


def sources_of(table: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a generator's table; for a list `each`, a table per entry, whose values replace the shared ones.

    Entries without a name are numbered, since each is a separate source.
    """
    if "each" not in table:
        yield table
        return
    shared, entries = {name: value for name, value in table.items() if name != "each"}, table["each"]
    if not (isinstance(entries, list) and entries and all(isinstance(entry, Mapping) for entry in entries)):
        raise InputError(
            f"generator {table.get('component')!r}: each is a list of tables, with what each source differs in"
        )
    if not isinstance(name := shared.get("name", "source"), str):
        raise InputError(f"generator {table.get('component')!r}: setting 'name' is {name!r}: give a string")
    for number, entry in enumerate(entries, start=1):
        yield merged(shared, {"name": f"{name} {number}"} | entry)


def merged(table: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table updated by another one; tables within are merged in the same way."""
    both = {
        name: merged(table[name], value)
        if isinstance(value, Mapping) and isinstance(table.get(name), Mapping)
        else value
        for name, value in other.items()
    }
    return {**table, **both}
