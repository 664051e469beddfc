"""Recipes and their generators, as tests make them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmkbc.ask.plan import Asks
from lmkbc.recipe import Recipe, make_recipe
from lmkbc.recipe_file import RecipeFile
from lmkbc.run.base import Run
from lmkbc.settings import checked
from lmkbc.types import Generator, Notes
from lmkbc.workspace import Workspace

CUTOFF = {"rule": "cutoff", "threshold": 0.5}


def recipe_of(*tables: Mapping[str, Any], name: str = "x", select: Mapping[str, Any] = CUTOFF) -> Recipe:
    """A recipe of these generators' tables."""
    file = RecipeFile(description="", generate=tables, select=select)
    return make_recipe(name, file, Workspace().relations)


def asks(tables: Mapping[str, Any]) -> Asks:
    """What these tables ask of a model."""
    return checked(Asks, tables, "generator")


def generators(run: Run, recipe: Recipe, notes: Notes | None = None) -> Iterator[tuple[str, Generator]]:
    """The opened generators of a recipe, with their names."""
    for spec in recipe.generate:
        yield from spec.opened(run, notes or Notes())


def generated(run: Run, recipe: Recipe, queries: Sequence[Any]) -> tuple[list[Any], Notes]:
    """What the only generator of a recipe proposes, and what it notes."""
    notes = Notes()
    ((_, generator),) = generators(run, recipe, notes)
    return list(generator.generate(queries)), notes
