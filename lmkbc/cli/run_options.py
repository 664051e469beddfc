"""Groups of options: what every command that runs a recipe takes, and the run that comes of it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from lmkbc.api import opening
from lmkbc.cli import options
from lmkbc.models.budget import checked_prices
from lmkbc.run.base import Servers

if TYPE_CHECKING:
    pass


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
    fresh: options.Fresh = False
    concurrency: options.Concurrency = None
    max_cost: options.MaxCost = None
    max_tokens: options.MaxTokens = None
    prices: options.Prices = None
    store: options.StorePlace = None

    def as_settings(self) -> Servers:
        """As a run takes them. InputError for prices or a limit that make no sense."""
        prices = None
        if self.prices is not None:
            prices = checked_prices([*map(_number, self.prices.split(","))], f"--prices is {self.prices!r}")
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        return Servers(**own | {"prices": prices})


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def as_options(recipe: RecipeOptions, sources: SourceOptions, servers: ServerOptions) -> opening.RunOptions:
    """The options as the verbs of `lmkbc.api` take them."""
    groups = (recipe, sources, servers.as_settings())
    given: Any = {field.name: getattr(group, field.name) for group in groups for field in fields(group)}
    options: opening.RunOptions = given
    return options
