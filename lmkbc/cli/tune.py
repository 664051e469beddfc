"""`lmkbc tune`: learn, per relation, which selection rule to use and with which parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

import typer

from lmkbc import submission, thresholds
from lmkbc.cli import options
from lmkbc.cli.run_options import RecipeOptions, ServerOptions, SourceOptions, opened
from lmkbc.cli.screen import note, show_json
from lmkbc.cli.spread import spread
from lmkbc.cli.tables import show_table
from lmkbc.cli.terminal import progress
from lmkbc.files.atomic import check_file
from lmkbc.pipeline import propose, split_sha256
from lmkbc.tune.defaults import FOLDS, SEED, TRIALS
from lmkbc.tune.tune import Tuned
from lmkbc.tune.tune import tune as tune_rules

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
    rules: Annotated[str | None, typer.Option(help="Only these rules, comma-separated.")] = None,
    write: Annotated[bool, typer.Option("--write/--no-write", help="Write thresholds/EDITION/SYSTEM.toml.")] = True,
    json: options.AsJson = False,
    source_options: SourceOptions,
    server_options: ServerOptions,
) -> None:
    """Learn what to keep, per relation. The cross-validated F1 is the one to believe."""
    run, recipe = opened(recipe_options, source_options, server_options)
    space, chosen = run.workspace, run.edition
    examples = space.examples(chosen, split)
    path = thresholds.path_of(space.folder("thresholds"), chosen.name, recipe.name)
    check_file(path if write else None)
    with progress() as report:
        proposals = propose(run, recipe, [example.query for example in examples], report)
        tuned = tune_rules(
            proposals.sets,
            examples,
            chosen,
            relations=run.relations,
            folds=folds,
            trials=trials,
            seed=seed,
            storage=storage,
            rules=options.listed(rules),
            report=report,
        )
    if json:
        show_json(_as_json(tuned))
    else:
        _print(tuned)
    if write:
        provenance = thresholds.Provenance.of(
            tuned,
            edition=chosen.name,
            system=recipe.name,
            data_sha256=split_sha256(run, split),
            candidates_sha256=submission.sha256(submission.candidate_lines(proposals.sets)),
        )
        thresholds.write(path, tuned, provenance)
        note(f"wrote {path}")


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


def describe(table: Mapping[str, Any]) -> str:
    """A rule on one line; long tables are named, not shown."""
    parameters = {name: value for name, value in table.items() if name != "rule" and not isinstance(value, Mapping)}
    rules = [value for value in table.values() if isinstance(value, Mapping) and "rule" in value]
    inner = "".join(f" over {describe(rule)}" for rule in rules)
    return " ".join([str(table["rule"]), *(f"{name}={value}" for name, value in parameters.items())]) + inner


def _print(tuned: Tuned) -> None:
    rows: list[list[Any]] = [
        [
            name,
            relation.rows,
            relation.cv_f1,
            relation.cv_f1_without_optuna,
            relation.insample_f1,
            describe(relation.rule.to_table()),
        ]
        for name, relation in sorted(tuned.relations.items())
    ]
    overall = [tuned.cv_macro_f1, tuned.cv_macro_f1_without_optuna, tuned.insample_macro_f1]
    rows.append(["*** Average ***", None, *overall, ""])
    columns = ["relation", "rows", "F1 out of fold", "without Optuna", "F1 in sample", "rule"]
    show_table(columns, rows)
    if tuned.failed:
        note(f"{tuned.failed} queries have no answer: they count as wrong")
