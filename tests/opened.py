"""Recipes and their generators, as tests make them."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import tomli_w
from space import MINI, RELATIONS, SPACE, TRAIN

from lmkbc import Edition, Relation
from lmkbc.ask.builder import PromptBuilder
from lmkbc.generate.conversation import Conversation
from lmkbc.generate.language_model import AnswerGenerator
from lmkbc.models.answers import Store
from lmkbc.models.located import generative
from lmkbc.models.server.address import Server
from lmkbc.models.server.server_model import ServerModel
from lmkbc.recipe import RecipeFile, make_recipe
from lmkbc.testing import Example, Notes, Run

CUTOFF = {"rule": "cutoff", "threshold": 0.5}


def recipe_of(
    *tables: Mapping[str, Any],
    name: str = "x",
    select: Mapping[str, Any] = CUTOFF,
    known: Mapping[str, Relation] = SPACE.relations,
    **steps: Any,
) -> Any:
    """A recipe of these generators' tables. known: relations that it may name. steps: other tables, such as link."""
    file = RecipeFile(description="", generate=tables, select=select, **steps)
    return make_recipe(name, file, known)


COMPONENTS = {"probe": "masked", "ranking": "causal"}
"""Part of a generator's table -> a generator that has it; others are those of a chat."""


def part(name: str, known: Mapping[str, Relation] = SPACE.relations, /, **settings: Any) -> Any:
    """Return a part of a recipe as its table gives it: a step's, or one within a generator's table."""
    if name in ("clean", "link", "pool"):
        return getattr(recipe_of({"component": "nothing"}, known=known, **{name: settings}), name)
    table = {"component": COMPONENTS.get(name, "chat"), name: settings}
    return getattr(recipe_of(table, known=known).generate[0], name)


def recipe_file(path: Path, *tables: Mapping[str, Any], select: Mapping[str, Any] = CUTOFF, **parts: Any) -> Path:
    """Write a recipe of these generators' tables."""
    path.write_text(tomli_w.dumps({"description": "x", "generate": tables, "select": select, **parts}))
    return path


def asks(tables: Mapping[str, Any]) -> Any:
    """Return what these tables ask of a model."""
    return recipe_of({"component": "chat", **tables}).generate[0]


def begins_here(recipe: Any) -> bool:
    """Return whether a recipe begins with a model that a package brings to this machine."""
    return generative(str(getattr(recipe.generate[0], "model", ""))) is not None


def learned(component: str, edition: Edition, relations: Mapping[str, Relation], rows: Sequence[Example]) -> Any:
    """A generator that has learned from these labelled rows."""
    run: Any = SimpleNamespace(edition=edition, relations=relations, labelled=rows)
    return recipe_of({"component": component}).generate[0].open(run, Notes())


def generators(run: Run, recipe: Any, notes: Notes | None = None) -> Iterator[tuple[str, Any]]:
    """The opened generators of a recipe, with their names."""
    for spec in recipe.generate:
        yield from spec.opened(run, notes or Notes())


def over_server(
    asking: PromptBuilder,
    relations: Mapping[str, Relation],
    server: Server,
    store: Store,
    **how: Any,
) -> AnswerGenerator:
    """A generator over a server's model."""
    notes = Notes()
    model = ServerModel(server, store, notes=notes, **how)
    talk = Conversation(asking, relations, server.name, None, notes)
    return AnswerGenerator(model, talk, server.name, notes)


HASTY = part("limits", total_wait=4.0, timeout=60.0, concurrency=4)
"""Tries again soon, but gives an answer more time than a busy machine can take from it."""


def chat(
    folder: Path,
    server: Any,
    model: str = "stand-in",
    *,
    any_model: bool = False,
    store: str = "store.sqlite",
    **how: Any,
) -> AnswerGenerator:
    """A generator over a server, or an address, that asks about the relations of the bundled edition.

    how: tables of a generator, which say what is asked; and what the model takes beside them.
    """
    tables = {name: how.pop(name) for name in ("prompt", "shots", "sampling", "relations") if name in how}
    url = getattr(server, "url", server)
    where = server if isinstance(server, Server) else Server.of(url, model, any_model=any_model)
    asking = PromptBuilder(MINI, RELATIONS, TRAIN, asks(tables), SPACE.relations)
    return over_server(asking, RELATIONS, where, Store(folder / store), **{"limits": HASTY, **how})


def over_local(
    model: Any,
    asking: PromptBuilder,
    relations: Mapping[str, Relation],
    name: str,
    identity: str = "",
    *,
    store: Store | None = None,
    context: Any = None,
) -> AnswerGenerator:
    """A generator over a causal model."""
    from lmkbc.local.local_model import LocalModel

    notes = Notes()
    talk = Conversation(asking, relations, name, context, notes)
    return AnswerGenerator(LocalModel(model, name, identity, store=store, notes=notes), talk, name, notes)


def generated(run: Run, recipe: Any, queries: Sequence[Any]) -> tuple[list[Any], Notes]:
    """Return what the only generator of a recipe proposes, and what it notes."""
    notes = Notes()
    ((_, generator),) = generators(run, recipe, notes)
    return list(generator.generate(queries)), notes
