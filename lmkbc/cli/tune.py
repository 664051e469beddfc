"""`lmkbc tune`: learn, per relation, which selection rule to use and with which parameters."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lmkbc.api.tuning import described
from lmkbc.api.tuning import tune as tune_rules
from lmkbc.cli import options
from lmkbc.cli.run_options import RecipeOptions, ServerOptions, SourceOptions, as_options
from lmkbc.cli.screen import note, show_json
from lmkbc.cli.spread import spread
from lmkbc.cli.tables import show_table
from lmkbc.cli.terminal import progress
from lmkbc.tune.defaults import FOLDS, SEED, TRIALS

if TYPE_CHECKING:
    from lmkbc.tune.tune import Tuned

Folds = Annotated[int, typer.Option(min=2, help="Folds by subject.")]
Trials = Annotated[int, typer.Option(min=0, help="Optuna trials per relation and fold at most; 0: exact sweeps only.")]
EXAMPLE = "Example: lmkbc tune --split val --edition 2023 --from gpt4.jsonl.gz --search-table search.json --no-write"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("tune", epilog=EXAMPLE)(spread(tune))


def tune(
    *,
    split: options.Split = "val",
    recipe_options: RecipeOptions,
    folds: Folds = FOLDS,
    trials: Trials = TRIALS,
    seed: Annotated[int, typer.Option(help="Seed of folds and search.")] = SEED,
    storage: Annotated[str | None, typer.Option(help="Optuna storage URL that several processes share.")] = None,
    relation: options.Relations = None,
    limit: options.Limit = None,
    rules: Annotated[str | None, typer.Option(help="Only these rules, comma-separated.")] = None,
    write: Annotated[bool, typer.Option("--write/--no-write", help="Write thresholds/EDITION/SYSTEM.toml.")] = True,
    json: options.AsJson = False,
    source_options: SourceOptions,
    server_options: ServerOptions,
) -> None:
    """Learn what to keep, per relation. The cross-validated F1 is the one to believe."""
    with progress() as report:
        tuning = tune_rules(
            split,
            folds=folds,
            trials=trials,
            seed=seed,
            storage=storage,
            rules=options.listed(rules),
            relation=relation,
            limit=limit,
            write=write,
            progress=report,
            **as_options(recipe_options, source_options, server_options),
        )
    if json:
        show_json(_as_json(tuning.tuned))
    else:
        _print(tuning.tuned)
    if tuning.path is not None:
        note(f"wrote {tuning.path}")
    elif write:
        note("nothing is written, since a part of the split was tuned on")


def _as_json(tuned: Tuned) -> dict[str, Any]:
    relations = {
        name: asdict(relation) | {"rule": relation.rule.to_table()} for name, relation in tuned.relations.items()
    }
    return {
        "cv_macro_f1": tuned.cv_macro_f1,
        "cv_macro_f1_without_optuna": tuned.cv_macro_f1_without_optuna,
        "insample_macro_f1": tuned.insample_macro_f1,
        "failed": tuned.failed,
        "folds": tuned.folds,
        "trials": tuned.trials,
        "seed": tuned.seed,
        "relations": relations,
    }


def _print(tuned: Tuned) -> None:
    rows: list[list[Any]] = [
        [
            name,
            relation.rows,
            relation.cv_f1,
            relation.cv_f1_without_optuna,
            relation.insample_f1,
            described(relation.rule.to_table()),
        ]
        for name, relation in sorted(tuned.relations.items())
    ]
    overall = [tuned.cv_macro_f1, tuned.cv_macro_f1_without_optuna, tuned.insample_macro_f1]
    rows.append(["*** Average ***", None, *overall, ""])
    columns = ["relation", "rows", "F1 out of fold", "without Optuna", "F1 in sample", "rule"]
    show_table(columns, rows)
    if tuned.failed:
        note(f"{tuned.failed} queries have no answer: they count as wrong")
