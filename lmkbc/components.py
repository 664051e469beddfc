"""The generators that a recipe can name, and what they are given. Heavy modules are imported only when named."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from lmkbc.errors import InputError, did_you_mean
from lmkbc.types import Candidate, CandidateSet, Edition, Example, Generator, Query, Relation, System
from lmkbc.workspace import Workspace

Settings = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Context:
    """What a run works with: the edition, its data, and what the user gave on the command line."""

    workspace: Workspace
    edition: Edition
    model: str | None = None
    files: tuple[Path, ...] = ()
    search_table: Path | None = None
    offline: bool = False
    cache: Path | None = None

    @cached_property
    def relations(self) -> dict[str, Relation]:
        """The edition's relations, by the names it gives them."""
        return {name: self.workspace.relation(name) for name in self.edition.relations}

    @cached_property
    def train(self) -> list[Example]:
        """The train split."""
        return self.workspace.examples(self.edition, "train")


class Nothing:
    """Proposes no object for any query: the all-empty file, which every system must beat."""

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """Yield one set per query that only proposes to answer nothing."""
        for query in queries:
            yield CandidateSet(query, (Candidate("", 1.0, ("nothing",)),))


def _embedded(context: Context, encoder: bool = True) -> Generator:
    from lmkbc.generate.embedded import EmbeddedGenerator
    from lmkbc.generate.embedded.encoder import find_encoder

    found = find_encoder() if encoder else None
    return EmbeddedGenerator(context.edition, context.relations, context.train, found, context.cache)


def _prior(context: Context) -> Generator:
    from lmkbc.generate.prior import ClassPrior

    return ClassPrior(context.edition, context.relations, context.train)


def _recorded(context: Context) -> Generator:
    from lmkbc.generate.recorded import Recorded

    if not context.files:
        raise InputError("this system reads recorded answers: name at least one file with --from")
    return Recorded(context.files, context.edition, context.relations)


def _nothing(_: Context) -> Generator:
    return Nothing()


GENERATORS: dict[str, Callable[..., Generator]] = {
    "embedded": _embedded,
    "nothing": _nothing,
    "prior": _prior,
    "recorded": _recorded,
}


def generators(context: Context, system: System) -> Iterator[tuple[str, Generator]]:
    """The generators of a recipe with a name for each; recorded answers are one generator per file."""
    for settings in system.generate:
        name = str(settings.get("component"))
        if name == "recorded" and len(context.files) > 1:
            for path in context.files:
                yield path.name, _build(replace(context, files=(path,)), settings)
        else:
            yield name, _build(context, settings)


def _build(context: Context, settings: Settings) -> Generator:
    own = dict(settings)
    name = own.pop("component", None)
    if name not in GENERATORS:
        raise InputError(f"unknown generator {name!r}: {did_you_mean(str(name), GENERATORS)}")
    known = set(inspect.signature(GENERATORS[name]).parameters)
    for setting in own:
        if setting not in known:
            raise InputError(f"generator {name!r} has no setting {setting!r}: {did_you_mean(setting, known)}")
    return GENERATORS[name](context, **own)
