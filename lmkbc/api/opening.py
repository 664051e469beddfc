"""The first step of every public function: the workspace, the edition and the run of its options."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmkbc.api.options import RunOptions, Sources
from lmkbc.edition import Edition
from lmkbc.models.store_place import place_of
from lmkbc.run.subset import Subset
from lmkbc.workspace import Workspace

if TYPE_CHECKING:
    from lmkbc.recipe import Recipe
    from lmkbc.run.base import Run

log = logging.getLogger(__name__)


def placed(path: Path | str | None) -> Path | None:
    """Return a path that may be given as text."""
    return None if path is None else Path(path)


def space_of(sources: Sources) -> Workspace:
    """Return the workspace that the options name."""
    return Workspace(placed(sources.get("workspace")), placed(sources.get("data")))


def chosen_edition(workspace: Workspace, name: str | None) -> Edition:
    """Return the edition named, else the one of highest rank whose data is here; one line in the log says which."""
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
    """Open a run and its recipe: recorded answers where files are given, else the default. InputError for bad input."""
    space = space_of(options)
    return _opened(options, space, chosen_edition(space, options.get("edition")))


def opened_subset(
    options: RunOptions, split: str | None, relations: Sequence[str] | None, limit: int | None
) -> tuple[Run, Recipe, Subset]:
    """Open a run of a subset of a split, and its recipe. The subset is checked before a recipe loads its models.

    split: None for the edition's labelled held-out one.
    """
    space = space_of(options)
    edition = chosen_edition(space, options.get("edition"))
    space.split_path(edition, split or edition.held_out)
    subset = Subset.of(space, edition, relations, limit)
    return *_opened(options, space, edition), subset


def _opened(options: RunOptions, space: Workspace, edition: Edition) -> tuple[Run, Recipe]:
    from lmkbc.models.budget import checked_prices
    from lmkbc.recipe import read_recipe
    from lmkbc.run.base import Run, Servers

    given: Any = {field.name: options[field.name] for field in fields(Servers) if options.get(field.name) is not None}  # type: ignore[literal-required]
    if "prices" in given:
        given["prices"] = checked_prices([*given["prices"]], f"prices is {given['prices']!r}")
    if isinstance(given.get("store"), str):
        given["store"] = place_of(given["store"])
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
        servers=Servers(**given),
    )
    return run, chosen
