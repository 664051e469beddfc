"""Keywords that a public function takes: all of them in its signature, and a TypeError for any other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from inspect import Parameter, getdoc, signature
from typing import Any, ParamSpec, TypeVar

from lmkbc.errors import did_you_mean

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def keywords(options: Any = None) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Return a decorator that refuses unknown keywords by name, and has `help` and notebooks show the known ones.

    options: the TypedDict that the function unpacks from its `**options`, where it does. A type checker reads the
    function's own annotations, so that the TypedDict stays the only list.
    """

    def decorate(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        shown = signature(function)
        shown = shown.replace(parameters=[*_expanded(shown.parameters.values(), options)])
        named = {one.name for one in shown.parameters.values() if one.kind in _BY_NAME}

        @wraps(function)
        def call(*values: Parameters.args, **given: Parameters.kwargs) -> Result:
            if unknown := [name for name in given if name not in named]:
                said = "; ".join(f"{name!r}: {did_you_mean(name, named)}" for name in unknown)
                raise TypeError(f"{function.__name__}() takes no keyword {said}")
            return function(*values, **given)

        call.__signature__ = shown  # type: ignore[attr-defined]
        if options is not None:
            call.__doc__ = f"{getdoc(function)}\n\n{getdoc(options)}"
        return call

    return decorate


_BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


def _expanded(parameters: Any, options: Any) -> Iterator[Parameter]:
    """Yield the parameters, with those of the TypedDict in the place of `**options`."""
    for one in parameters:
        if one.kind is not Parameter.VAR_KEYWORD:
            yield one
            continue
        for name, hint in options.__annotations__.items():
            kind = getattr(hint, "__forward_arg__", hint)
            default = False if kind == "bool" else None
            yield Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)
