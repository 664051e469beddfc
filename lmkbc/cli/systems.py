"""`lmkbc systems`: the recipes that come with lmkbc."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from lmkbc.cli.options import AsJson
from lmkbc.cli.screen import show_json, show_table
from lmkbc.workspace import Workspace

app = typer.Typer(no_args_is_help=True, help="List and show the recipes.", rich_markup_mode=None)


def register(parent: typer.Typer) -> None:
    """Add the command group."""
    parent.add_typer(app, name="systems")


@app.command("list", epilog="Example: lmkbc systems list")
def list_(json: AsJson = False) -> None:
    """List the bundled recipes."""
    space = Workspace()
    systems = [space.system(name) for name in space.system_names()]
    if json:
        show_json([{"name": system.name, "description": system.description} for system in systems])
    else:
        show_table(["system", "description"], [[system.name, system.description] for system in systems])


@app.command("show", epilog="Example: lmkbc systems show embedded")
def show(system: Annotated[str, typer.Argument(help="A recipe's name or TOML file.")], json: AsJson = False) -> None:
    """Show a recipe: components, settings, citation, published scores."""
    found = asdict(Workspace().system(system))
    if json:
        show_json(found)
    else:
        show_table(["field", "value"], [[name, str(value)] for name, value in found.items() if value])
