"""`lmkbc probe`: benchmarks of what a model knows, and controls that tell recall from what a train split teaches."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from lmkbc.cli import options as given
from lmkbc.cli import probe_kamel, probe_kmir, probe_lama, probe_optiprompt
from lmkbc.cli.screen import note, progress, show_json, show_table

app = typer.Typer(no_args_is_help=True, help="Probe what a model knows.", rich_markup_mode=None)


def register(parent: typer.Typer) -> None:
    """Add the command group."""
    app.command("kamel", epilog=probe_kamel.EXAMPLE)(probe_kamel.kamel)
    app.command("lama", epilog=probe_lama.EXAMPLE)(probe_lama.lama)
    app.command("optiprompt", epilog=probe_optiprompt.EXAMPLE)(probe_optiprompt.optiprompt)
    app.add_typer(probe_kmir.app, name="kmir")
    parent.add_typer(app, name="probe")


@app.command("controls", epilog="Example: lmkbc probe controls --edition 2023 --system recorded --from gpt4.jsonl.gz")
def controls(
    edition: given.EditionName = None,
    system: given.SystemName = None,
    split: Annotated[
        str | None, typer.Option("--split", "-s", help="A labelled split; default: the edition's held-out one.")
    ] = None,
    model: given.Model = None,
    files: given.Files = None,
    tuned: Annotated[
        bool, typer.Option("--tune/--no-tune", help="Tune selection and score out of fold, or use the recipes' rules.")
    ] = True,
    trials: Annotated[int, typer.Option(min=0, help="Optuna trials per relation; 0: exact sweeps only.")] = 0,
    folds: Annotated[int, typer.Option(min=2, help="Folds by subject.")] = 5,
    seed: Annotated[int, typer.Option(help="Seed of folds, search and random weights.")] = 0,
    random: Annotated[
        bool, typer.Option("--random/--no-random", help="Ask a local model's random twin too, by the same recipe.")
    ] = True,
    json: given.AsJson = False,
    data: given.Data = None,
    offline: given.Offline = False,
    search_table: given.SearchTable = None,
    index: given.IndexPath = None,
    workspace: given.Root = None,
    base_url: given.BaseUrl = None,
    concurrency: given.Concurrency = None,
    max_cost: given.MaxCost = None,
    max_tokens: given.MaxTokens = None,
    prices: given.Prices = None,
    store: given.StorePath = None,
) -> None:
    """Show a system's F1 beside what train alone reaches, and its F1 on the queries that no control answers."""
    from lmkbc.probe.controls import Row, Selection
    from lmkbc.probe.controls import controls as run_controls

    servers = given.server_options(base_url, concurrency, max_cost, max_tokens, prices, store)
    context, recipe = given.opened(
        workspace, data, edition, system, model, files, search_table, offline, servers, index
    )  # fmt: skip
    chosen = context.edition
    examples = context.workspace.examples(chosen, split or chosen.held_out)
    how = Selection(tuned=tuned, trials=trials, folds=folds, seed=seed)
    with progress() as report:
        table = run_controls(context, recipe, examples, how, random=random, report=report)
    if json:
        show_json(asdict(table))
        return
    names = list(table.overall.controls)

    def line(name: str, row: Row) -> list[Any]:
        shares = ("-" if (share := row.controls[one]) is None else share for one in names)
        return [name, row.queries, row.system, *shares, row.hard, row.hard_f1]

    rows = [line(name, row) for name, row in table.relations.items()]
    rows.append(line("*** Average ***", table.overall))
    show_table(["relation", "queries", recipe.name, *names, "hard", "F1 on hard"], rows)
    if table.failed:
        note(f"{table.failed} queries have no answer: they count as wrong")
