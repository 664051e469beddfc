"""Options of the public functions: which there are, and a TypeError for any other keyword."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from inspect import Parameter, getdoc, signature
from pathlib import Path
from typing import Any, ParamSpec, TypedDict, TypeVar, get_args

from lmkbc.errors import did_you_mean
from lmkbc.models.store_place import Place

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
