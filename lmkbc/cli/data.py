"""`lmkbc data`: which official data is here, whether it is undamaged, how to fetch it, and data of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from lmkbc.api.own_domain import make_data
from lmkbc.commands.terminal import note, progress, show_json, show_table
from lmkbc.commands.typed import made_from
from lmkbc.edition import Edition
from lmkbc.errors import InputError, LmkbcError, counted
from lmkbc.files import fetch as fetching
from lmkbc.files.checksum import file_sha256
from lmkbc.files.places import data_dirs
from lmkbc.files.splits import check_values
from lmkbc.files.writable import check_directory
from lmkbc.run.saved import read_gold
from lmkbc.workspace import Workspace

app = typer.Typer(
    no_args_is_help=True,
    help="List, check, fetch and make labelled splits.",
    rich_markup_mode=None,
)


@app.command("list", epilog="Example: lmkbc data list")
def list_(data: Path | None = None, workspace: Path | None = None, trust: bool = False, json: bool = False) -> None:
    """List the splits that are here, with their paths."""
    space = Workspace(workspace, data, trust=trust)
    _show([row for edition in space.editions.values() for row in _files(space, edition)], json)


@app.command("check", epilog="Example: lmkbc data check 2023")
def check(
    editions: Annotated[list[str] | None, typer.Argument(help="Editions to check. Default: all.")] = None,
    data: Path | None = None,
    workspace: Path | None = None,
    trust: bool = False,
    json: bool = False,
) -> None:
    """Read every row, and compare checksums with the published ones."""
    space = Workspace(workspace, data, trust=trust)
    chosen = [space.edition(name) for name in editions] if editions else list(space.editions.values())
    rows = [row | _checked(space, edition, row) for edition in chosen for row in _files(space, edition)]
    _show(rows, json)
    wrong = [row for row in rows if row["state"] == "differs"]
    if wrong:
        raise LmkbcError(
            f"{counted(len(wrong), 'split differs', 'splits differ')} from what was published: "
            "'lmkbc data fetch EDITION' replaces them"
        )


@app.command("fetch", epilog="Example: lmkbc data fetch 2023")
def fetch(
    edition: Annotated[str, typer.Argument(help="Edition to fetch.")],
    data: Annotated[
        Path | None, typer.Option("--data", help="Directory to put it in. Default: $LMKBC_DATA, else the cache.")
    ] = None,
    workspace: Path | None = None,
    trust: bool = False,
) -> None:
    """Download the official splits. Resumes, checks SHA-256, replaces files only when complete."""
    chosen = Workspace(workspace, trust=trust).edition(edition)
    if chosen.is_bundled:
        raise InputError(f"edition {edition} comes with lmkbc: there is nothing to fetch")
    root = data if data is not None else data_dirs(None)[0]
    check_directory(root)
    with progress() as report:
        for path in fetching.fetch(chosen, root, report):
            note(f"{path}: ok")


@app.command("make", epilog="Example: lmkbc data make --workspace my-workspace --per-relation 200")
@made_from(make_data)
def make(*, json: bool = False, **given: Any) -> None:
    """Make labelled data of relations from Wikidata. Train, val and test share no subject."""
    with progress() as report:
        data = make_data(**given, progress=report)
    _show(data.rows(), json)
    for name, drawn in data.relations.items():
        if reasons := ", ".join(f"{count} with {reason}" for reason, count in drawn.left_out.items() if count):
            note(f"{name}: subjects that are left out, since they cannot be gold: {reasons}")
    note(f"wrote train, val and test to {data.folder}: read some rows, then learn what to keep with 'lmkbc tune'")


def _files(space: Workspace, edition: Edition) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for split in edition.splits:
        try:
            path = space.split_path(edition, split)
            rows.append({"edition": edition.name, "split": split, "state": "here", "path": str(path)})
        except InputError:
            rows.append({"edition": edition.name, "split": split, "state": "absent", "path": None})
    return rows


def _checked(space: Workspace, edition: Edition, row: dict[str, Any]) -> dict[str, Any]:
    if row["path"] is None:
        return {"rows": None}
    source = edition.splits[row["split"]]
    same = source is None or file_sha256(Path(row["path"])) == source.sha256
    is_labelled = space.has_gold(edition, row["split"])
    rows = len((space.examples if is_labelled else space.queries)(edition, row["split"]))
    if is_labelled:
        read_gold(Path(row["path"]), edition)  # the column that scores need
    if is_labelled and source is None:  # published rows are as they are
        check_values(Path(row["path"]), edition, space.relations)
    return {"state": "ok" if same else "differs", "rows": rows}


def _show(rows: list[dict[str, Any]], json: bool) -> None:
    if json:
        show_json(rows)
    else:
        columns = list(rows[0])
        show_table(columns, [[row[column] for column in columns] for row in rows])
