"""`lmkbc systems`: the recipes that come with lmkbc."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from lmkbc.cli.options import AsJson
from lmkbc.cli.screen import show_json, show_table, tame
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


@app.command("show", epilog="Example: lmkbc systems show recorded-embedded > my.toml")
def show(system: Annotated[str, typer.Argument(help="A recipe's name or TOML file.")], json: AsJson = False) -> None:
    """Show a recipe, as TOML to start your own from."""
    space = Workspace()
    found = space.system(system)
    if json:
        show_json(asdict(found))
    else:
        typer.echo(tame(space.recipe_path(system).read_text(encoding="utf-8")), nl=False)
