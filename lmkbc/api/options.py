"""Options of the public functions: the list, a TypeError for any other keyword, and the run that they lead to."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import wraps
from inspect import Parameter, getdoc, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypedDict, TypeVar, get_args

from lmkbc.edition import Edition
from lmkbc.errors import did_you_mean
from lmkbc.models.store_place import Place, place_of
from lmkbc.run.subset import Subset
from lmkbc.workspace import Workspace

if TYPE_CHECKING:
    from lmkbc.recipe import Recipe
    from lmkbc.run.base import Run

log = logging.getLogger(__name__)

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


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


def keywords(options: Any = None) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Return a decorator that refuses unknown keywords by name, and has `help` and notebooks show the known ones.

    options: the TypedDict that the function unpacks from its `**options`, where it does. A type checker reads the
    function's own annotations, so that the TypedDict stays the only list.
    """

    def decorate(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        shown = signature(function)
        shown = shown.replace(parameters=[*expanded(shown.parameters.values(), _hints(options))])
        named = {one.name for one in shown.parameters.values() if one.kind in _BY_NAME}

        @wraps(function)
        def call(*values: Parameters.args, **given: Parameters.kwargs) -> Result:
            if unknown := [name for name in given if name not in named]:
                refused = "; ".join(f"{name!r}: {did_you_mean(name, named)}" for name in unknown)
                raise TypeError(f"{function.__name__}() takes no keyword {refused}")
            return function(*values, **given)

        call.__signature__ = shown  # type: ignore[attr-defined]
        if options is not None:
            call.__doc__ = f"{getdoc(function)}\n\n{getdoc(options)}"
        return call

    return decorate


_BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


def _hints(options: Any) -> dict[str, Any]:
    """Return the annotations of a TypedDict as they were written."""
    return {
        name: getattr(hint, "__forward_arg__", hint) for name, hint in getattr(options, "__annotations__", {}).items()
    }


def expanded(parameters: Iterable[Parameter], options: Mapping[str, Any]) -> Iterator[Parameter]:
    """Yield parameters, with one per option in the place of `**options`. options: name to annotation."""
    for one in parameters:
        if one.kind is not Parameter.VAR_KEYWORD:
            yield one
            continue
        for name, hint in options.items():
            default = False if hint == "bool" or bool in get_args(hint)[:1] else None
            yield Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)


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
