"""A command's parameter that is a dataclass: a group of options, which several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer reads it: a parameter that is a group of options gives way to the group's own, in place."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}

    def parameters() -> Iterator[Parameter]:
        for name, own in signature(command).parameters.items():
            if name not in groups:
                yield own.replace(annotation=hints[name], kind=Parameter.KEYWORD_ONLY)
                continue
            types = get_type_hints(groups[name], include_extras=True)
            for field in fields(groups[name]):
                yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=types[field.name])

    @wraps(command)
    def call(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    call.__signature__ = Signature(list(parameters()))  # type: ignore[attr-defined]
    return call
