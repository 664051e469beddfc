"""Conversion of commands for typer: made from the functions of `lmkbc.api`, and from groups of options."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from msgspec import Meta
from typer.core import TyperCommand

from lmkbc.session.options import HEADINGS, OUTPUT, Gold, Limit, OneRelation, RunOptions, Split, described


class _CommandOptions(RunOptions, total=False):
    """Options that a command may take by name."""

    split: Split
    relation: OneRelation
    limit: Limit
    gold: Gold
    run: Annotated[
        str, Meta(description="Run directory, zip or predictions file.", extra={"argument": True, "metavar": "RUN"})
    ]
    dry_run: Annotated[
        bool,
        Meta(
            description="Ask nothing. Show requests, tokens, cost and time, and how many answers are kept already.",
            extra=OUTPUT,
        ),
    ]
    json: Annotated[bool, Meta(description="Print the result as JSON.", extra=OUTPUT)]


SHARED = described(_CommandOptions)
FEW = 14
"""Most parameters of a command, --help included, that stand in one list."""


class _GroupedCommand(TyperCommand):
    """A command whose help has its options under headings, once they are many."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, the usual options, and the others by heading."""
        parameters = self.get_params(ctx)
        parts: dict[str, list[tuple[str, str]]] = {name: [] for name in ("Arguments", "Options", *HEADINGS)}
        for one in parameters:
            heading = "Arguments" if one.param_type_name == "argument" else getattr(one, "rich_help_panel", None)
            if len(parameters) <= FEW and heading != "Arguments":
                heading = None
            if record := one.get_help_record(ctx):
                parts.setdefault(heading or "Options", []).append(record)
        for heading, records in parts.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


def made_from(function: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator for what shows the result of a function of `lmkbc.api`: the command has the options of both.

    The function's options are given to `**given`. Those of the decorated one come after them.
    """

    def decorate(show: Callable[..., None]) -> Callable[..., None]:
        options = {
            name: _option(one, *function.options[name])
            for name, one in signature(function).parameters.items()
            if name in function.options
        }
        taken = signature(show).parameters.items()
        own = {name: one for name, one in taken if name not in options and one.kind is not Parameter.VAR_KEYWORD}
        show.__signature__ = Signature([*options.values(), *own.values()])  # type: ignore[attr-defined]
        return show

    return decorate


def _option(one: Parameter, hint: Any, about: Meta) -> Parameter:
    """Return the parameter of a function as an option of a command."""
    kind = list[hint] if one.kind is Parameter.VAR_POSITIONAL else hint
    default = (about.extra or {}).get("default", one.default)
    return Parameter(
        one.name, Parameter.KEYWORD_ONLY, default=default, annotation=_typed(one.name, Annotated[kind, about])
    )


def spread_all(app: typer.Typer) -> typer.Typer:
    """Return a group of commands, each converted for typer."""
    for command in app.registered_commands:
        command.cls = _GroupedCommand
        command.callback = command.callback and spread(command.callback)
    for group in app.registered_groups:
        if group.typer_instance is not None:
            spread_all(group.typer_instance)
    return app


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command in a form for typer: each group of options is replaced by its options.

    A group is a dataclass, whose fields with a description are options. A parameter's default gives the values of a
    group's other fields, and of options that are not given. A parameter without a description is the shared option of
    its name.
    """
    hints = get_type_hints(command, include_extras=True)
    declared = signature(command).parameters
    groups = {name: _options(hint) for name, hint in hints.items() if name in declared and is_dataclass(hint)}

    def parameters() -> Iterator[Parameter]:
        for own in declared.values():
            hint = hints[own.name] if isinstance(own.annotation, str) else own.annotation
            for name, (kind, default) in groups.get(own.name, {own.name: (hint, own.default)}).items():
                given = getattr(own.default, name, default) if own.name in groups else default
                yield Parameter(name, Parameter.KEYWORD_ONLY, default=given, annotation=_typed(name, kind))

    @wraps(command)
    def call(**values: Any) -> None:
        for name, group in groups.items():
            given, default = {option: values.pop(option) for option in group}, declared[name].default
            values[name] = hints[name](**given) if default is Parameter.empty else replace(default, **given)
        command(**values)

    call.__signature__ = Signature(list(parameters()))  # type: ignore[attr-defined]
    return call


def _options(group: Any) -> dict[str, tuple[Any, Any]]:
    """Return name -> (type, default) for the fields of a dataclass that are options."""
    hints = get_type_hints(group, include_extras=True)
    return {
        field.name: (hints[field.name], Parameter.empty if field.default is MISSING else field.default)
        for field in fields(group)
        if get_origin(hints[field.name]) is Annotated
    }


def _typed(name: str, hint: Any) -> Any:
    """Return the annotation of an option for typer: a single type, such as a path if text is allowed too."""
    kind = hint.__origin__ if get_origin(hint) is Annotated else hint
    about = getattr(hint, "__metadata__", SHARED.get(name, ())[1:])
    if not about or not isinstance(about[0], Meta):
        return hint
    extra: dict[str, Any] = {"flags": (f"--{name.replace('_', '-')}",), "argument": False, **(about[0].extra or {})}
    flags, is_argument, heading = extra.pop("flags"), extra.pop("argument"), extra.pop("group", None)
    make: Any = typer.Argument if is_argument else partial(typer.Option, *flags)
    parts = get_args(kind)
    lists = [part for part in parts if get_origin(part) is Sequence]
    if "parser" in extra:
        kind = Any
    elif get_origin(kind) is list:
        kind = list[Path] if Path in get_args(parts[0]) else kind
    elif lists:
        kind = list[Path] | None if Path in get_args(lists[0].__args__[0]) else list[str] | None
    elif str in parts[1:]:
        kind = parts[0] | None
    settings = {key: value for key, value in extra.items() if key not in ("settle", "default")}
    return Annotated[
        kind, make(min=about[0].ge, max=about[0].le, help=about[0].description, rich_help_panel=heading, **settings)
    ]
