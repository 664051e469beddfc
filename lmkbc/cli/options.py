"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass, replace
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from msgspec import Meta

from lmkbc.api.options import expanded
from lmkbc.models.budget import checked_prices
from lmkbc.models.store_place import place_of
from lmkbc.workspace import Workspace


def _editions() -> list[str]:
    """Return what a shell offers after --edition."""
    return list(Workspace().editions)


def _systems() -> list[str]:
    """Return what a shell offers after --system."""
    return Workspace().system_names()


def _prices(text: str) -> tuple[float, float]:
    """Return the two prices of --prices. InputError for anything else."""
    what = f"--prices is {text!r}"
    try:
        return checked_prices([float(price) for price in text.split(",")], what)
    except ValueError:
        return checked_prices(None, what)


EditionName = Annotated[
    str | None,
    typer.Option("--edition", "-e", autocompletion=_editions, help="Benchmark edition, such as 2023 or mini."),
]
Split = Annotated[str, typer.Option("--split", "-s", help="train, val (or dev) or test.")]
OneSplit = Annotated[
    str | None, typer.Option("--split", "-s", help="train or val (or dev); default: that of the run, else val.")
]
Relations = Annotated[
    list[str] | None, typer.Option("--relation", "-r", help="Only this relation, by any of its names; repeatable.")
]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="Only the first so many queries.")]
Data = Annotated[
    Path | None, typer.Option("--data", metavar="DIR", help="Directory that holds lmkbc2022/, lmkbc2023/, ...")
]
Root = Annotated[
    Path | None, typer.Option("--workspace", metavar="DIR", help="Directory with relations/, eval/ and thresholds/.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Files = Annotated[
    list[Path] | None,
    typer.Option(
        "--from", metavar="FILE", help="Recorded completions or candidates (JSONL, also gzipped); repeatable."
    ),
]
SearchTable = Annotated[
    Path | None,
    typer.Option("--search-table", metavar="FILE", help="Recorded entity search: JSON object, text -> QID or ''."),
]
IndexPath = Annotated[
    Path | None, typer.Option("--index", metavar="FILE", help="Alias index made by 'lmkbc link build'.")
]
Offline = Annotated[bool, typer.Option("--offline", help="Open no socket.")]
SystemName = Annotated[
    str | None,
    typer.Option(
        "--system",
        metavar="NAME",
        autocompletion=_systems,
        help="Recipe: a name from 'lmkbc systems list', or a TOML file.",
    ),
]

Model = Annotated[str | None, typer.Option("--model", help="Model id, directory or GGUF file; before the recipe's.")]

BaseUrl = Annotated[
    str | None, typer.Option("--base-url", help="OpenAI-compatible server; else the recipe's or $OPENAI_BASE_URL.")
]
Concurrency = Annotated[int | None, typer.Option("--concurrency", min=1, help="Requests in flight at a time.")]
MaxCost = Annotated[float | None, typer.Option("--max-cost", min=0, help="Stop asking before a run costs more.")]
MaxTokens = Annotated[int | None, typer.Option("--max-tokens", min=0, help="Stop asking before a run uses more.")]
Prices = Annotated[
    Any,  # tuple[float, float] | None, but typer takes no union
    typer.Option(
        "--prices",
        parser=_prices,
        metavar="PRICES",
        help="Of a million prompt and answer tokens, as in 2.50,10; for --max-cost.",
    ),
]
AnyThresholds = Annotated[
    bool,
    typer.Option(
        "--any-thresholds", help="Use thresholds even where they were tuned on other data, models or prompts."
    ),
]
Untuned = Annotated[bool, typer.Option("--untuned", help="Use no thresholds: keep what the recipe's own rule keeps.")]
Precision = Annotated[
    float | None,
    typer.Option(
        "--precision",
        help="Keep, per relation, what tuning expects to be right so often, as in 0.9, and withhold the rest. It is "
        "learned on known facts and is often less on new ones: check a sample.",
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Ask nothing: show requests, tokens, cost and time, and what the store has already."
    ),
]
AnyModel = Annotated[
    bool, typer.Option("--any-model", help="Take what the server serves, and record it under that name.")
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Ask models anew: new answers replace those that the store has.")]
StorePlace = Annotated[
    Any,  # Place | None, but typer takes no union
    typer.Option(
        "--store",
        parser=place_of,
        metavar="FILE|URL",
        help="Keeps models' answers: a file, or postgresql://USER@HOST/DATABASE for many machines (its password in "
        "PGPASSWORD); default: $LMKBC_STORE, else in the user's cache.",
    ),
]

RUN_OPTIONS = {
    "edition": EditionName,
    "system": SystemName,
    "model": Model,
    "files": Files,
    "data": Data,
    "offline": Offline,
    "search_table": SearchTable,
    "index": IndexPath,
    "workspace": Root,
    "base_url": BaseUrl,
    "any_model": AnyModel,
    "fresh": Fresh,
    "concurrency": Concurrency,
    "max_cost": MaxCost,
    "max_tokens": MaxTokens,
    "prices": Prices,
    "store": StorePlace,
}
"""The options of `lmkbc.api.options.RunOptions`, as the command line shows them, in this order."""


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
