"""What every verb begins with: the workspace, the edition that is meant, and the run that options make."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from lmkbc.edition import Edition
from lmkbc.models.store_place import Place, place_of
from lmkbc.run.subset import Part
from lmkbc.workspace import Workspace

if TYPE_CHECKING:
    from lmkbc.recipe import Recipe
    from lmkbc.run.base import Run

log = logging.getLogger(__name__)


class Sources(TypedDict, total=False):
    """Where editions and relations come from; `RunOptions` describes each."""

    edition: str | None
    data: Path | str | None
    workspace: Path | str | None


class RunOptions(Sources, total=False):
    """Options that `lmkbc.predict`, `lmkbc.tune` and `lmkbc.build` share.

    edition: by name; else the one of highest rank whose data is here. data: the directory that holds lmkbc2023/ and the
    like; else $LMKBC_DATA or the user's cache. workspace: a directory with relations/, eval/ and thresholds/. system: a
    recipe by name or TOML file. model: id, directory or GGUF file, before the recipe's. files: recorded completions or
    candidates. search_table, index: what links are looked up in. offline: open no socket. base_url, any_model,
    concurrency: of an OpenAI-compatible server. fresh: ask anew for what the store has. max_cost, max_tokens: where
    asking stops; prices: of a million prompt and answer tokens. store: what keeps models' answers, a file or a
    database's URL.
    """

    system: str | None
    model: str | None
    files: Sequence[Path | str] | None
    search_table: Path | str | None
    index: Path | str | None
    offline: bool
    base_url: str | None
    any_model: bool
    fresh: bool
    concurrency: int | None
    max_cost: float | None
    max_tokens: int | None
    prices: tuple[float, float] | None
    store: Place | str | None


def placed(path: Path | str | None) -> Path | None:
    """A path that may be given as text."""
    return None if path is None else Path(path)


def space_of(sources: Sources) -> Workspace:
    """The workspace that is meant."""
    return Workspace(placed(sources.get("workspace")), placed(sources.get("data")))


def chosen_edition(workspace: Workspace, name: str | None) -> Edition:
    """The edition named, else the one of highest rank whose data is here; then one line says so."""
    if name is not None:
        return workspace.edition(name)
    ranked = sorted(workspace.editions.values(), key=lambda edition: -edition.rank)
    chosen = next((edition for edition in ranked if workspace.has_data(edition)), ranked[0])
    if chosen is not ranked[0]:
        best = ranked[0].name
        log.info(
            "No data of edition %s here: using the small bundled edition '%s'. "
            "'lmkbc data fetch %s' fetches the real one.",
            best,
            chosen.name,
            best,
        )
    return chosen


def opened(options: RunOptions) -> tuple[Run, Recipe]:
    """A run, and its recipe: recorded answers where files are given, else the default. InputError for what is wrong."""
    space = space_of(options)
    return _opened(options, space, chosen_edition(space, options.get("edition")))


def opened_part(
    options: RunOptions, split: str | None, relations: Sequence[str] | None, limit: int | None
) -> tuple[Run, Recipe, Part]:
    """A run of a part of a split, and its recipe, as `opened`; the part is checked before a recipe loads its models.

    split: None for the edition's labelled held-out one.
    """
    space = space_of(options)
    edition = chosen_edition(space, options.get("edition"))
    space.split_path(edition, split or edition.held_out)
    part = Part.of(space, edition, relations, limit)
    return *_opened(options, space, edition), part


def _opened(options: RunOptions, space: Workspace, edition: Edition) -> tuple[Run, Recipe]:
    from lmkbc.models.budget import checked_prices
    from lmkbc.recipe import read_recipe
    from lmkbc.run.base import Run, Servers

    prices = options.get("prices")
    servers = Servers(
        base_url=options.get("base_url"),
        any_model=options.get("any_model", False),
        fresh=options.get("fresh", False),
        concurrency=options.get("concurrency"),
        max_cost=options.get("max_cost"),
        max_tokens=options.get("max_tokens"),
        prices=None if prices is None else checked_prices([*prices], f"prices is {prices!r}"),
        store=place_of(store) if isinstance(store := options.get("store"), str) else store,
    )
    model = options.get("model")
    files = tuple(map(Path, options.get("files") or ()))
    system = options.get("system") or ("recorded" if files else None)
    if system:
        chosen = read_recipe(space, system)
    else:
        from lmkbc.run.default import default_recipe  # which reads of local models, and loads much

        chosen, remark = default_recipe(space, model)
        if remark:
            log.info("%s", remark)
    run = Run(
        workspace=space,
        edition=edition,
        model=model,
        files=files,
        search_table=placed(options.get("search_table")),
        index=placed(options.get("index")),
        offline=options.get("offline", False),
        servers=servers,
    )
    return run, chosen
