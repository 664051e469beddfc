"""Options that several commands share, alone and in groups, and the edition that is meant when none is named."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from lmkbc import run
from lmkbc.cli.screen import note
from lmkbc.edition import Edition
from lmkbc.errors import InputError
from lmkbc.models.budget import checked_prices
from lmkbc.workspace import Workspace

if TYPE_CHECKING:
    from lmkbc.recipe import Recipe

EditionName = Annotated[str | None, typer.Option("--edition", "-e", help="Benchmark edition, such as 2023 or mini.")]
Split = Annotated[str, typer.Option("--split", "-s", help="train, val (or dev) or test.")]
Data = Annotated[Path | None, typer.Option("--data", help="Directory that holds lmkbc2022/, lmkbc2023/, ...")]
Root = Annotated[Path | None, typer.Option("--workspace", help="Directory with relations/, eval/ and thresholds/.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Files = Annotated[
    list[Path] | None,
    typer.Option("--from", help="Recorded completions or candidates (JSONL, also gzipped); repeatable."),
]
SearchTable = Annotated[
    Path | None, typer.Option("--search-table", help="Recorded entity search: JSON object, text -> QID or ''.")
]
IndexPath = Annotated[Path | None, typer.Option("--index", help="Alias index made by 'lmkbc link build'.")]
Offline = Annotated[bool, typer.Option("--offline", help="Open no socket.")]
SystemName = Annotated[
    str | None, typer.Option("--system", help="Recipe: a name from 'lmkbc systems list', or a TOML file.")
]

Model = Annotated[str | None, typer.Option("--model", help="Model id, directory or GGUF file; before the recipe's.")]

BaseUrl = Annotated[
    str | None, typer.Option("--base-url", help="OpenAI-compatible server; else the recipe's or $OPENAI_BASE_URL.")
]
Concurrency = Annotated[int | None, typer.Option("--concurrency", min=1, help="Requests in flight at a time.")]
MaxCost = Annotated[float | None, typer.Option("--max-cost", min=0, help="Stop asking before a run costs more.")]
MaxTokens = Annotated[int | None, typer.Option("--max-tokens", min=0, help="Stop asking before a run uses more.")]
Prices = Annotated[
    str | None, typer.Option("--prices", help="Of a million prompt and answer tokens, as in 2.50,10; for --max-cost.")
]
AnyModel = Annotated[
    bool, typer.Option("--any-model", help="Take what the server serves, whatever it calls its model.")
]
StorePath = Annotated[
    Path | None, typer.Option("--store", help="File that keeps models' answers; default: in the user's cache.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Which recipe a run follows, for which edition, and whose answers it reads."""

    edition: EditionName = None
    system: SystemName = None
    model: Model = None
    files: Files = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What a run may look things up in."""

    data: Data = None
    offline: Offline = False
    search_table: SearchTable = None
    index: IndexPath = None
    workspace: Root = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """How servers are asked, and where answers are kept."""

    base_url: BaseUrl = None
    any_model: AnyModel = False
    concurrency: Concurrency = None
    max_cost: MaxCost = None
    max_tokens: MaxTokens = None
    prices: Prices = None
    store: StorePath = None

    def given(self) -> run.Servers:
        """As a run takes them. InputError for prices or a limit that are no numbers."""
        prices = None
        if self.prices is not None:
            prices = checked_prices([*map(_number, self.prices.split(","))], f"--prices is {self.prices!r}")
        if self.max_cost is not None and not math.isfinite(self.max_cost):
            raise InputError(f"--max-cost is {self.max_cost}: give a finite number")
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        return run.Servers(**own | {"prices": prices})


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer reads it: a parameter that is a group of options gives way to the group's own, in place."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}

    def parameters() -> Iterator[Parameter]:
        for name, own in signature(command).parameters.items():
            if name not in groups:
                yield own.replace(annotation=hints[name], kind=Parameter.KEYWORD_ONLY)
                continue
            told = get_type_hints(groups[name], include_extras=True)
            for one in fields(groups[name]):
                yield Parameter(one.name, Parameter.KEYWORD_ONLY, default=one.default, annotation=told[one.name])

    @wraps(command)
    def run(**options: Any) -> None:
        for name, group in groups.items():
            options[name] = group(**{one.name: options.pop(one.name) for one in fields(group)})
        command(**options)

    run.__signature__ = Signature(list(parameters()))  # type: ignore[attr-defined]
    return run


def listed(names: str | None) -> list[str] | None:
    """The names of a comma-separated option; None where it was not given. InputError where one is empty."""
    if names is None:
        return None
    found = [name.strip() for name in names.split(",")]
    if not all(found):
        raise InputError(f"{names!r} names nothing at one of its commas: give names with one comma between two")
    return found


def chosen_edition(workspace: Workspace, name: str | None) -> Edition:
    """The edition named, else the one of highest rank whose data is here; then one line says so."""
    if name is not None:
        return workspace.edition(name)
    ranked = sorted(workspace.editions.values(), key=lambda edition: -edition.rank)
    chosen = next((edition for edition in ranked if workspace.has_data(edition)), ranked[0])
    if chosen is not ranked[0]:
        best = ranked[0].name
        if (place := os.environ.get("LMKBC_DATA")) and not Path(place).is_dir():
            note(f"LMKBC_DATA is {place!r}, which is no directory")
        note(
            f"No data of edition {best} here: using the small bundled edition '{chosen.name}'. "
            f"'lmkbc data fetch {best}' fetches the real one."
        )
    return chosen


def opened(asked: Asked, means: Means, servers: Servers) -> tuple[run.Run, Recipe]:
    """A run, and its recipe: recorded answers where files are given, else the embedded default."""
    from lmkbc.recipe import read_recipe

    given = servers.given()
    space = Workspace(means.workspace, means.data)
    recipe = read_recipe(space, asked.system or ("recorded" if asked.files else "embedded"))
    opened_run = run.Run(
        workspace=space,
        edition=chosen_edition(space, asked.edition),
        model=asked.model,
        files=tuple(asked.files or ()),
        search_table=means.search_table,
        index=means.index,
        offline=means.offline,
        servers=given,
    )
    return opened_run, recipe
