"""`lmkbc relations`: the contents of relation modules, a check of them, and new ones from Wikidata."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from lmkbc.api.own_domain import new_relations
from lmkbc.commands.terminal import note, show_json, show_table
from lmkbc.commands.typed import made_from
from lmkbc.errors import counted
from lmkbc.relation import Relation
from lmkbc.workspace import Workspace

app = typer.Typer(no_args_is_help=True, help="List, show, check and make relation modules.", rich_markup_mode=None)


@app.command("list", epilog="Example: lmkbc relations list")
def list_(workspace: Path | None = None, trust: bool = False, json: bool = False) -> None:
    """List all relations with their names in the editions."""
    relations = _distinct(Workspace(workspace, trust=trust))
    if json:
        show_json([{"name": relation.name, "names": relation.names} for relation in relations])
        return
    rows = [
        [
            relation.name,
            relation.property,
            relation.kind,
            "yes" if relation.may_be_empty else "no",
            ", ".join(relation.names),
        ]
        for relation in relations
    ]
    show_table(["relation", "property", "kind", "may be empty", "names"], rows)


@app.command("show", epilog="Example: lmkbc relations show countryLandBordersCountry")
def show(
    relation: Annotated[str, typer.Argument(help="A relation's name, in any edition's spelling.")],
    workspace: Path | None = None,
    trust: bool = False,
    json: bool = False,
) -> None:
    """Show all settings of a relation module."""
    table: dict[str, Any] = msgspec.to_builtins(
        Workspace(workspace, trust=trust).relation(relation), order="deterministic"
    )
    if json:
        show_json(table)
        return
    shape = table.pop("shape")
    flat = table | {f"shape.{name}": value for name, value in shape.items() if value}
    show_table(["field", "value"], [[name, _text(value)] for name, value in flat.items()])


@app.command("check", epilog="Example: lmkbc relations check --workspace my-workspace")
def check(workspace: Path | None = None, trust: bool = False) -> None:
    """Load every relation, edition and class. The first wrong one is reported with its file."""
    space = Workspace(workspace, trust=trust)
    relations, editions = counted(len(_distinct(space)), "relation"), counted(len(space.editions), "edition")
    note(f"{relations}, {editions} and {counted(len(space.classes), 'class', 'classes')} are sound")


@app.command("new", epilog="Example: lmkbc relations new P287 P571 P737 --of Q9143")
@made_from(new_relations)
def new(**given: Any) -> None:
    """Write a relation module for each property of Wikidata. Read and mend it. No file is replaced."""
    paths = new_relations(**given)
    here = "" if given["workspace"] is None else f" --workspace {given['workspace']}"
    skeleton = ":" in given["properties"][0] or (given["offline"] and given["dump"] is None)
    todo = "fill them in" if skeleton else f"read and mend them, then make labelled data with 'lmkbc data make{here}'"
    note(f"wrote {', '.join(map(str, paths))}: {todo}")


def _distinct(space: Workspace) -> list[Relation]:
    """Return all relations, the workspace's own first."""
    found = {id(relation): relation for relation in space.relations.values()}.values()
    return sorted(found, key=lambda relation: (relation.name not in space.own_relations, relation.name))


def _text(value: object) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_text(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return " | ".join(map(_text, value))
    return str(value).replace("\n", "\\n")
