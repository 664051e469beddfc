"""Parameters of a command that stand for several options: `**options` of a run, or a dataclass that commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints

from lmkbc.api.options import expanded
from lmkbc.cli.options import RUN_OPTIONS


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command as typer reads it: groups of options give way to their own options, in place."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}

    def parameters() -> Iterator[Parameter]:
        for own in expanded(signature(command).parameters.values(), RUN_OPTIONS):
            if own.name not in groups:
                annotation = hints.get(own.name, own.annotation)
                yield own.replace(annotation=annotation, kind=Parameter.KEYWORD_ONLY)
                continue
            types = get_type_hints(groups[own.name], include_extras=True)
            for field in fields(groups[own.name]):
                yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=types[field.name])

    @wraps(command)
    def call(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    call.__signature__ = Signature(list(parameters()))  # type: ignore[attr-defined]
    return call
