"""Options that several commands share, and the edition that is meant when none is named."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lmkbc.cli.screen import note
from lmkbc.types import Edition
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
Offline = Annotated[bool, typer.Option("--offline", help="Open no socket.")]
SystemName = Annotated[
    str | None, typer.Option("--system", help="Recipe: a name from 'lmkbc systems list', or a TOML file.")
]

Model = Annotated[str | None, typer.Option("--model", help="Model id or directory, in place of the recipe's.")]


def chosen_edition(workspace: Workspace, name: str | None) -> Edition:
    """The edition named, else the one of highest rank whose data is here; then one line says so."""
    if name is not None:
        return workspace.edition(name)
    ranked = sorted(workspace.editions.values(), key=lambda edition: -edition.rank)
    chosen = next((edition for edition in ranked if workspace.has_data(edition)), ranked[0])
    if chosen is not ranked[0]:
        best = ranked[0].name
        note(
            f"No data of edition {best} here: using the small bundled edition '{chosen.name}'. "
            f"'lmkbc data fetch {best}' fetches the real one."
        )
    return chosen
