"""`lmkbc evaluate`: the official table of a predictions file."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from lmkbc.cli.options import (
    AsJson,
    Data,
    EditionName,
    Root,
    Split,
    chosen_edition,
)
from lmkbc.cli.screen import note, note_published, show_json, show_json_rows
from lmkbc.cli.tables import show_table
from lmkbc.edition import Edition
from lmkbc.evaluate import Evaluation, evaluate_file
from lmkbc.scoring.table import Summary
from lmkbc.workspace import Workspace

EXAMPLE = "Example: lmkbc evaluate submissions/mini-val-embedded/predictions.jsonl --split val --edition mini"
PLAIN = {"p": "P", "r": "R", "f1": "F1"}
DETAILED = {"micro_p": "micro P", "micro_r": "micro R", "micro_f1": "micro F1"} | {
    "average_predictions": "avg. preds",
    "empty_predictions": "empty",
}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("evaluate", epilog=EXAMPLE)(evaluate)


def evaluate(
    predictions: Annotated[Path, typer.Argument(help="Predictions in the edition's JSONL format.")],
    split: Split = "val",
    edition: EditionName = None,
    profile: Annotated[
        str | None, typer.Option(help="An earlier scorer of the edition, such as 2023-legacy, in place of today's.")
    ] = None,
    gold: Annotated[Path | None, typer.Option(help="Gold file, in place of the split's.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse missing, unknown or malformed rows.")] = False,
    rows: Annotated[bool, typer.Option("--rows", help="With --json: the score of every row too.")] = False,
    json: AsJson = False,
    data: Data = None,
    workspace: Root = None,
) -> None:
    """Score predictions exactly as the organisers do. Each edition has its own official table.

    Some published figures were computed with an earlier scorer, which --profile names.
    """
    space = Workspace(workspace, data)
    chosen = chosen_edition(space, edition)
    if profile:
        chosen = chosen.under(profile)
    path = gold if gold is not None else space.gold_path(chosen, split)
    result = evaluate_file(predictions, path, chosen, strict=strict, rows=rows)
    if result.remarks:
        note(f"{predictions}: {result.remarks} rows, treated as the official script does")
    if json:
        _show_json(chosen, result, rows, profile)
    else:
        _print_table(chosen, result, split, profile)


def _show_json(edition: Edition, result: Evaluation, rows: bool, profile: str | None) -> None:
    overall = result.table.overall
    shown: dict[str, Any] = {
        "edition": edition.name,
        **({"profile": profile} if profile else {}),
        "macro_f1": overall.f1,
        "macro_p": overall.p,
        "macro_r": overall.r,
        "micro_f1": overall.micro_f1,
        "micro_p": overall.micro_p,
        "micro_r": overall.micro_r,
        "average_predictions": overall.average_predictions,
        "empty_predictions": overall.empty_predictions,
        "remarks": {name: getattr(result, name) for name in ("missing", "unknown", "repeated", "malformed")},
        "relations": {name: asdict(summary) for name, summary in result.table.relations.items()},
    }
    if not rows:
        show_json(shown)
        return
    scores = (
        {"SubjectEntity": subject, "Relation": relation, **score._asdict()}
        for (subject, relation), score in result.table.rows
    )
    show_json_rows(shown, "rows", scores)


def _print_table(edition: Edition, result: Evaluation, split: str, profile: str | None) -> None:
    columns = PLAIN | (DETAILED if edition.metric.detailed else {})
    lines = [[name, *_values(summary, columns)] for name, summary in result.table.relations.items()]
    lines.append(["*** Average ***", *_values(result.table.overall, columns)])
    show_table(
        ["relation", *columns.values()],
        lines,
        title=f"LM-KBC {edition.name}, {split}{f' ({profile})' if profile else ''}",
    )
    note_published(edition, split, profile or "")


def _values(summary: Summary, columns: dict[str, str]) -> list[Any]:
    return [getattr(summary, name) for name in columns]
