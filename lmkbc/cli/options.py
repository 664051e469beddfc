"""Options that several commands share, and the edition that is meant when none is named."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from lmkbc.cli.screen import note
from lmkbc.edition import Edition
from lmkbc.errors import InputError
from lmkbc.workspace import Workspace

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
        "--dry-run", help="Ask nothing: tell requests, tokens, cost and time, and what the store has already."
    ),
]
AnyModel = Annotated[
    bool, typer.Option("--any-model", help="Take what the server serves, whatever it calls its model.")
]
StorePath = Annotated[
    Path | None, typer.Option("--store", help="File that keeps models' answers; default: in the user's cache.")
]


def listed(names: str | None) -> list[str] | None:
    """The names of a comma-separated option; None where it was not given. InputError where one is empty."""
    if names is None:
        return None
    given = [name.strip() for name in names.split(",")]
    if not all(given):
        raise InputError(f"{names!r} names nothing at one of its commas: give names with one comma between two")
    return given


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
