"""Parameters of a command that stand for several options: `**options` of a run, or a dataclass that commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass, replace
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, get_type_hints

import typer
from msgspec import Meta

from lmkbc.api.options import expanded
from lmkbc.cli.options import RUN_OPTIONS


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command as typer reads it: groups of options give way to their own options, in place.

    A field of a dataclass is an option if it is annotated for typer, or by msgspec's `Meta` with a description; `extra`
    may name its flags, or make it an argument. The parameter's default, if it has one, holds the values of options that
    are not given, and of the other fields.
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: _options(hint) for name, hint in hints.items() if is_dataclass(hint)}
    declared = signature(command).parameters

    def parameters() -> Iterator[Parameter]:
        for own in expanded(declared.values(), RUN_OPTIONS):
            if own.name not in groups:
                annotation = hints.get(own.name, own.annotation)
                yield own.replace(annotation=annotation, kind=Parameter.KEYWORD_ONLY)
                continue
            for name, (option, usual) in groups[own.name].items():
                default = getattr(own.default, name, usual)
                yield Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=option)

    @wraps(command)
    def call(**values: Any) -> None:
        for name, group in groups.items():
            given, default = {option: values.pop(option) for option in group}, declared[name].default
            values[name] = hints[name](**given) if default is Parameter.empty else replace(default, **given)
        command(**values)

    call.__signature__ = Signature(list(parameters()))  # type: ignore[attr-defined]
    return call


def _options(group: Any) -> dict[str, tuple[Any, Any]]:
    """Return the fields of a dataclass that are options: the type as typer reads it, and the default."""
    hints = get_type_hints(group, include_extras=True)
    found = {}
    for field in fields(group):
        for about in getattr(hints[field.name], "__metadata__", ()):
            hint = hints[field.name]
            if isinstance(about, Meta):
                extra, usual = about.extra or {}, (f"--{field.name.replace('_', '-')}",)
                flags = () if extra.get("argument") else extra.get("flags", usual)
                kind = typer.Argument if extra.get("argument") else typer.Option
                made = kind(*flags, min=about.ge, max=about.le, help=about.description)
                hint = Annotated[hint.__origin__, made]
            found[field.name] = hint, Parameter.empty if field.default is MISSING else field.default
    return found
