"""Options that several commands share, and conversion of commands for typer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, Unpack, get_args, get_origin, get_type_hints

import typer
from msgspec import Meta

from lmkbc.api.keywords import expanded
from lmkbc.run.options import RunOptions, described


class _CommandOptions(RunOptions, total=False):
    """Options that a command may take by name."""

    split: Annotated[str, Meta(description="Split: train, val (or dev) or test.", extra={"flags": ("--split", "-s")})]
    relation: Annotated[
        list[str] | None,
        Meta(description="Only this relation, by any of its names. Repeatable.", extra={"flags": ("--relation", "-r")}),
    ]
    limit: Annotated[int | None, Meta(ge=1, description="Only the first N queries.")]
    gold: Annotated[str | None, Meta(description="Gold file in place of the split.", extra={"metavar": "FILE"})]
    run: Annotated[
        str, Meta(description="Run directory, zip or predictions file.", extra={"argument": True, "metavar": "RUN"})
    ]
    folds: Annotated[int, Meta(ge=2, description="Number of folds; all rows of a subject are in one fold.")]
    trials: Annotated[int, Meta(ge=0, description="Most Optuna trials per relation and fold. 0: exact sweeps only.")]
    any_thresholds: Annotated[
        bool, Meta(description="Use thresholds even if they were tuned on other data, models or prompts.")
    ]
    untuned: Annotated[bool, Meta(description="Use no tuned thresholds, but the recipe's own rule.")]
    precision: Annotated[
        float | None,
        Meta(
            description="Least precision that tuning expects of what is kept, per relation, as in 0.9; the rest is "
            "withheld. It is learned on known facts and is often lower on new ones: check a sample."
        ),
    ]
    dry_run: Annotated[
        bool,
        Meta(description="Ask nothing. Show requests, tokens, cost and time, and how many answers are kept already."),
    ]
    json: Annotated[bool, Meta(description="Print the result as JSON.")]


OneSplit = Annotated[
    str | None,
    Meta(
        description="Labelled split: train or val (or dev). Default: the run's own, else val.",
        extra={"flags": ("--split", "-s")},
    ),
]


SHARED = described(_CommandOptions)


def spread_all(app: typer.Typer) -> typer.Typer:
    """Return a group of commands, each converted for typer."""
    for command in app.registered_commands:
        command.callback = command.callback and spread(command.callback)
    for group in app.registered_groups:
        if group.typer_instance is not None:
            spread_all(group.typer_instance)
    return app


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command in a form for typer: each group of options is replaced by its options.

    A group is a dataclass or the TypedDict of `**options`. In a dataclass, fields with a description are options. A
    parameter's default gives the values of a group's other fields, and of options that are not given. A parameter
    without a description is the shared option of its name.
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: _options(hint) for name, hint in hints.items() if is_dataclass(hint)}
    declared = signature(command).parameters
    rest = next((get_args(hint)[0] for hint in hints.values() if get_origin(hint) is Unpack), RunOptions)

    def parameters() -> Iterator[Parameter]:
        for own in expanded(declared.values(), described(rest)):
            usual = {own.name: (hints.get(own.name, own.annotation), own.default)}
            for name, (hint, default) in groups.get(own.name, usual).items():
                given = getattr(own.default, name, default) if own.name in groups else default
                yield Parameter(name, Parameter.KEYWORD_ONLY, default=given, annotation=_as_typed(name, hint))

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
        if hasattr(hints[field.name], "__metadata__")
    }


def _as_typed(name: str, hint: Any) -> Any:
    """Return the annotation of an option for typer: a single type; a path if text or a path is allowed."""
    about = getattr(hint, "__metadata__", ())
    kind = hint.__origin__ if about else hint
    if not about and name in SHARED:
        about = SHARED[name][1:]
    if not about or not isinstance(about[0], Meta):
        return hint
    extra = {"flags": (f"--{name.replace('_', '-')}",), "argument": False, **(about[0].extra or {})}
    flags, is_argument = extra.pop("flags"), extra.pop("argument")
    make: Any = typer.Argument if is_argument else partial(typer.Option, *flags)
    if "parser" in extra:
        kind = Any
    elif {Path, str} <= {*get_args(kind)}:
        kind = Path | None
    elif any(get_origin(part) is Sequence for part in get_args(kind)):
        kind = list[Path] | None
    return Annotated[kind, make(min=about[0].ge, max=about[0].le, help=about[0].description, **extra)]
