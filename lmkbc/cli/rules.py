"""`lmkbc rules`: the rules that say what is kept of the candidates."""

from __future__ import annotations

import inspect

import typer

from lmkbc.commands.terminal import show_json, show_table
from lmkbc.registry import RULES
from lmkbc.tune.families import FAMILIES

app = typer.Typer(no_args_is_help=True, help="List the rules of selection.", rich_markup_mode=None)


@app.callback()
def _group() -> None:
    """List the rules of selection."""


@app.command("list", epilog="Example: lmkbc rules list")
def list_(json: bool = False) -> None:
    """List the rules. Tuned are those that 'lmkbc tune' tries."""
    rules = [(name, name in FAMILIES, inspect.getdoc(RULES.get(name)) or "") for name in sorted(RULES)]
    if json:
        show_json([{"name": name, "tuned": tuned, "description": about} for name, tuned, about in rules])
    else:
        rows = [
            [name, "yes" if tuned else "", " ".join(about.partition("\n\n")[0].split())] for name, tuned, about in rules
        ]
        show_table(["rule", "tuned", "what it does"], rows)
