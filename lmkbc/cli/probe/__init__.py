"""`lmkbc probe`: benchmarks of what a model knows, and controls that tell recall from what a train split teaches."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Unpack

import typer

from lmkbc.api.opening import opened_subset
from lmkbc.api.options import RunOptions
from lmkbc.cli.options import AsJson, Limit, Relations
from lmkbc.cli.probe import kamel, kmir, lama, optiprompt
from lmkbc.cli.screen import note, note_published, show_json
from lmkbc.cli.spread import spread
from lmkbc.cli.tables import show_table
from lmkbc.cli.terminal import progress
from lmkbc.cli.tune import Folds, Trials
from lmkbc.errors import counted
from lmkbc.tune.defaults import FOLDS, SEED, TRIALS

app = typer.Typer(no_args_is_help=True, help="Probe what a model knows.", rich_markup_mode=None)
app.command("kamel", epilog=kamel.EXAMPLE)(kamel.kamel)
app.command("lama", epilog=lama.EXAMPLE)(lama.lama)
app.command("optiprompt", epilog=optiprompt.EXAMPLE)(optiprompt.optiprompt)
app.add_typer(kmir.app, name="kmir")


@app.command("controls", epilog="Example: lmkbc probe controls --edition 2023 --system recorded --from gpt4.jsonl.gz")
@spread
def controls(
    *,
    split: Annotated[
        str | None, typer.Option("--split", "-s", help="A labelled split; default: the edition's held-out one.")
    ] = None,
    relation: Relations = None,
    limit: Limit = None,
    tuned: Annotated[
        bool, typer.Option("--tune/--no-tune", help="Tune selection and score out of fold, or use the recipes' rules.")
    ] = True,
    trials: Trials = TRIALS,
    folds: Folds = FOLDS,
    seed: Annotated[int, typer.Option(help="Seed of folds, search and random weights.")] = SEED,
    random: Annotated[
        bool, typer.Option("--random/--no-random", help="Ask a local model's random twin too, by the same recipe.")
    ] = True,
    json: AsJson = False,
    **given: Unpack[RunOptions],
) -> None:
    """Tell recall from learning. A system's F1 beside what train alone reaches, and on what no control answers."""
    from lmkbc.probe.controls import Row, Selection
    from lmkbc.probe.controls import controls as run_controls

    run, recipe, subset = opened_subset(given, split, relation, limit)
    chosen = run.edition
    whole = run.workspace.examples(chosen, split or chosen.held_out)
    examples = list(subset.rows(whole, lambda example: example.query.relation))
    how = Selection(tuned=tuned, trials=trials, folds=folds, seed=seed)
    with progress() as report:
        table = run_controls(run, recipe, examples, how, random=random, report=report)
    if json:
        show_json(asdict(table))
        return
    names = list(table.overall.controls)

    def line(name: str, row: Row) -> list[Any]:
        shares = ("-" if (share := row.controls[control]) is None else share for control in names)
        return [name, row.queries, row.system, *shares, row.hard, row.hard_f1]

    rows = [line(name, row) for name, row in table.relations.items()]
    rows.append(line("*** Average ***", table.overall))
    title = f"F1, LM-KBC {chosen.name}, {split or chosen.held_out}, {'tuned, out of fold' if tuned else 'untuned'}"
    show_table(["relation", "queries", recipe.name, *names, "hard", "F1 on hard"], rows, title=title)
    note_published(chosen, split or chosen.held_out)
    if table.failed:
        note(
            counted(
                table.failed, "query has no answer: it counts as wrong", "queries have no answer: they count as wrong"
            )
        )
