"""Groups of options: what every command that runs a recipe takes, and the run that comes of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from lmkbc import run
from lmkbc.cli import options
from lmkbc.cli.screen import note
from lmkbc.errors import InputError
from lmkbc.models.budget import checked_prices
from lmkbc.workspace import Workspace

if TYPE_CHECKING:
    from lmkbc.recipe import Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeOptions:
    """Which recipe a run follows, for which edition, and whose answers it reads."""

    edition: options.EditionName = None
    system: options.SystemName = None
    model: options.Model = None
    files: options.Files = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """What a run may look things up in."""

    data: options.Data = None
    offline: options.Offline = False
    search_table: options.SearchTable = None
    index: options.IndexPath = None
    workspace: options.Root = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """How servers are called, and where their replies are kept."""

    base_url: options.BaseUrl = None
    any_model: options.AnyModel = False
    concurrency: options.Concurrency = None
    max_cost: options.MaxCost = None
    max_tokens: options.MaxTokens = None
    prices: options.Prices = None
    store: options.StorePlace = None

    def as_settings(self) -> run.Servers:
        """As a run takes them. InputError for prices or a limit that are no numbers."""
        prices = None
        if self.prices is not None:
            prices = checked_prices([*map(_number, self.prices.split(","))], f"--prices is {self.prices!r}")
        if self.max_cost is not None and not math.isfinite(self.max_cost):
            raise InputError(f"--max-cost is {self.max_cost}: give a finite number")
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        return run.Servers(**own | {"prices": prices})


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def opened(recipe: RecipeOptions, sources: SourceOptions, servers: ServerOptions) -> tuple[run.Run, Recipe]:
    """A run, and its recipe: recorded answers where files are given, else the default."""
    from lmkbc.recipe import read_recipe

    settings = servers.as_settings()
    space = Workspace(sources.workspace, sources.data)
    system = recipe.system or ("recorded" if recipe.files else None)
    edition = options.chosen_edition(space, recipe.edition)
    if system:
        chosen = read_recipe(space, system)
    else:
        from lmkbc.default import default_recipe  # which reads of local models, and loads much

        chosen, remark = default_recipe(space, recipe.model)
        if remark:
            note(remark)
    opened_run = run.Run(
        workspace=space,
        edition=edition,
        model=recipe.model,
        files=tuple(recipe.files or ()),
        search_table=sources.search_table,
        index=sources.index,
        offline=sources.offline,
        servers=settings,
    )
    return opened_run, chosen
