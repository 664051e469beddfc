"""`lmkbc systems`: the recipes that come with lmkbc."""

from __future__ import annotations

import textwrap
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from lmkbc.api.predicting import foreseen
from lmkbc.api.standings import Order, Standing, standings
from lmkbc.commands.dry_run import show_prompts
from lmkbc.commands.terminal import note, show_json, show_table, tame
from lmkbc.errors import InputError, counted
from lmkbc.models.store_place import Place
from lmkbc.recipe import RecipeFile, check_all_read, read_file, read_recipe
from lmkbc.session.options import Servers
from lmkbc.session.run import ModelRun
from lmkbc.workspace import Workspace, system_name

WIDTH = 34
"""Most characters of what a recipe does, so that the list fits a terminal."""

app = typer.Typer(no_args_is_help=True, help="List and show the recipes.", rich_markup_mode=None)


@app.command("list", epilog="Example: lmkbc systems list")
def list_(json: bool = False) -> None:
    """List the recipes. Published systems have a year, an F1 and differences from the publication.

    N counts necessary differences, and S shortcuts that can be closed. W counts prompts in our words, which 'lmkbc
    systems fetch' replaces. With 'lmkbc systems show NAME', a recipe is printed with its models and differences.
    """
    space = Workspace()
    files = {name: read_file(space.recipe_path(name)) for name in space.system_names()}
    if json:
        show_json([{"name": name} | _summary(file) for name, file in files.items()])
        return
    rows = []
    for name, file in files.items():
        about = file.summary or textwrap.shorten(file.description, WIDTH, placeholder="...")
        counts = [len(sentences) if file.published else None for sentences in file.differences.values()]
        rows.append([name, about, file.year, file.score, *counts])
    show_table(["system", "what it does", "year", "F1", *KINDS], rows)
    note(
        "differences from what was published: N necessary, S shortcuts that can be closed, W our words in place of "
        "the authors', which 'lmkbc systems fetch' downloads; 'lmkbc systems show NAME'"
    )


def _summary(file: RecipeFile) -> dict[str, Any]:
    names = ("summary", "description", "citation", "year", "models", "wording")
    return {name: getattr(file, name) for name in names} | file.differences | {"published": dict(file.published)}


KINDS = ("N", "S", "W")
"""Heads of the numbers of differences, by kind."""
HEADS = ("system", "split", "F1", "model", "B", "draws", "tokens", "retrieval", "licence", *KINDS, "what it does")


@app.command("compare", epilog="Example: lmkbc systems compare 2026 --split test --sort tokens")
def compare(
    edition: Annotated[str, typer.Argument(help="An edition's name.")],
    split: Annotated[str | None, typer.Option("-s", "--split", help="Only results on this split.")] = None,
    sort: Annotated[Order, typer.Option(help="Order on a split: f1, billions, draws, tokens or system.")] = "f1",
    closed_book: Annotated[
        bool, typer.Option("--closed-book", help="Leave out systems that are known to read text.")
    ] = False,
    largest: Annotated[
        float | None,
        typer.Option(metavar="X", help="Only systems that are known to have at most X billion parameters."),
    ] = None,
    trust: bool = False,
    json: bool = False,
) -> None:
    """Compare the systems of an edition: F1, and what each needs.

    Our own are measured on the held-out split, and learn from train alone; all other results are published ones.
    B is parameters in billions, by the models' names. Draws are the most answers to a query. Tokens are the most that a
    model writes about it by the recipe's limits, checks of facts left out. Both are means of the relations. For N,
    S and W see 'lmkbc systems list'. A hyphen means unknown, or without limit.
    """
    rows = [
        row
        for row in standings(Workspace(trust=trust), edition, split, sort)
        if not (closed_book and row.retrieval not in ("", "none"))
        and (largest is None or (row.billions is not None and row.billions <= largest))
    ]
    if json:
        show_json([asdict(row) for row in rows])
        return
    show_table(HEADS, [columns(row) for row in rows])
    if own := {row.system: row.measured for row in rows if row.measured}:
        note(f"measured here, learned from train alone ({next(iter(own.values()))}): {', '.join(own)}")


def columns(row: Standing) -> list[Any]:
    """Return the cells of a system's line."""
    first, *others = row.model.split(" + ")
    cells = [
        "/".join(filter(None, (row.split, row.profile))),
        row.f1,
        f"{first} +{len(others)}" if others else first,
        row.billions and f"{row.billions:g}",
        *(count if count is None else round(count) for count in (row.draws, row.tokens)),
        row.retrieval,
        row.licence,
        *(None if one is None else len(one) for one in (row.differs, row.shortcuts, row.reworded)),
        row.about,
    ]
    return [row.system, *(None if one == "" else one for one in cells)]


@app.command("show", epilog="Example: lmkbc systems show recorded-embedded > my.toml")
def show(
    system: Annotated[str, typer.Argument(help="A recipe's name or TOML file.")],
    prompt: Annotated[
        tuple[str, str] | None,
        typer.Option("--prompt", metavar="SUBJECT RELATION", help="Print all that would be sent about a query."),
    ] = None,
    edition: Annotated[str | None, typer.Option("-e", "--edition", help="Edition of relation and examples.")] = None,
    trust: bool = False,
    json: bool = False,
) -> None:
    """Print a recipe as TOML, or with --prompt what it would ask.

    Where later requests depend on answers, their prompts have slots, such as {object}.
    """
    if prompt:
        subject, relation = prompt
        show_prompts(
            foreseen(subject=subject, relation=relation, system=system, edition=edition, trust=trust), json=json
        )
        return
    path = Workspace().recipe_path(system)
    if json:
        show_json({"name": system_name(path)} | asdict(read_file(path)))
    else:
        typer.echo(tame(path.read_text(encoding="utf-8")), nl=False)


@app.command("fetch", epilog="Example: lmkbc systems fetch llmke23")
def fetch(
    system: Annotated[str, typer.Argument(help="A recipe's name or TOML file.")],
    sha256: Annotated[
        list[str] | None, typer.Option("--sha256", help="SHA-256 of the file, if the recipe does not declare it.")
    ] = None,
    trust: bool = False,
) -> None:
    """Download the prompts of a system's authors.

    A recipe with wording = "authors" uses them. The SHA-256 of a download is checked.
    """
    from lmkbc.commands.terminal import progress
    from lmkbc.systems import authors

    with progress() as report:
        path = authors.fetch(Workspace(trust=trust), system, sha256 or (), report)
    note(f"{path}: ok; licence and credit are in {path.with_name('credit.txt').name} beside it")


@app.command("check", epilog="Example: lmkbc systems check bl25 --base-url http://127.0.0.1:8080/v1")
def check(
    systems: Annotated[list[str], typer.Argument(help="Recipes: names or TOML files.")],
    base_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Ask this server a few short questions too: what it offers. $OPENAI_BASE_URL is not asked.",
        ),
    ] = None,
    any_model: bool = False,
    timeout: float | None = None,
    model: str | None = None,
    store: Place | None = None,
    workspace: Path | None = None,
    trust: bool = False,
    json: bool = False,
) -> None:
    """Check recipes, their files, and with --base-url their server.

    No model is loaded, and without --base-url none is asked. Choices are the most answers to one request (n). The
    recipe's own fields are sent: those that are refused are left out in runs. A server that streams only does so.
    """
    if base_url is None and (any_model or timeout or model or store or json):
        options = "--any-model, --timeout, --model, --store and --json"
        raise InputError(f"{options} are of a server: give --base-url too, or leave them out")
    servers = Servers(base_url=base_url, any_model=any_model, timeout=timeout, store=store)
    space, run = Workspace(workspace, trust=trust), ModelRun(model=model, servers=servers)
    offers: list[dict[str, Any]] = []
    for system in systems:
        recipe = read_recipe(space, system)
        check_all_read(recipe, recipe.select)
        parts: list[Any] = recipe.parts
        for part in parts:
            part.check_files(space.relations)
        asked = {part.model: part for part in parts if hasattr(part, "offer")}
        offers += [{"system": recipe.name} | part.offer(run, space.relations) for part in asked.values() if base_url]
    if json:
        show_json(offers)
    elif offers:
        names = [name for name in offers[0] if name != "lists"]
        show_table(names, [[_cell(offer[name]) for name in names] for offer in offers])
        for offer in offers:
            if offer["samples"] > offer["choices"]:
                note(f"{offer['system']}: each of {offer['samples']} samples is asked for alone, since n is too large")
            if not offer["served"]:
                others = ", ".join(offer["lists"]) or "none"
                note(f"{offer['model']} is none of the models that the server lists ({others}): --model names another")
    note(counted(len(systems), "recipe makes sense", "recipes make sense"))


def _cell(value: Any) -> Any:
    """Return a value of a server's offer as a cell: a truth as a word, a list as names."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return (", ".join(value) or "none") if isinstance(value, list) else value
