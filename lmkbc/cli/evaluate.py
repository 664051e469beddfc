"""`lmkbc evaluate`: the official table of a predictions file."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from lmkbc.api.scores import Scores, score
from lmkbc.commands.terminal import note, note_published, show_as, show_json, show_table
from lmkbc.errors import InputError, OptionError, counted
from lmkbc.run.saved import SavedRun
from lmkbc.scoring.table import OVERALL
from lmkbc.session.options import OneSplit

EXAMPLE = "Example: lmkbc evaluate submissions/mini-val-embedded"


def evaluate(
    run: Path,
    split: OneSplit = None,
    edition: str | None = None,
    relation: list[str] | None = None,
    limit: int | None = None,
    profile: Annotated[
        str | None, typer.Option(help="Use an earlier scorer of the edition, such as 2023-legacy.")
    ] = None,
    gold: Path | None = None,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse missing, unknown or malformed rows.")] = False,
    interval: Annotated[
        bool, typer.Option("--interval", help="Add the 95 % interval of macro-F1 (bootstrap over subjects).")
    ] = False,
    rows: Annotated[bool, typer.Option("--rows", help="With --json: add the score of every row.")] = False,
    json: bool = False,
    form: Annotated[
        Literal["markdown", "latex", "csv"] | None, typer.Option("--format", help="Print the table in this format.")
    ] = None,
    data: Path | None = None,
    workspace: Path | None = None,
    trust: bool = False,
) -> None:
    """Score predictions exactly as the organisers do. Each edition has its own official table.

    Some published figures were computed with an earlier scorer: give its name with --profile.
    """
    if rows and not json:
        raise InputError("--rows is shown as JSON: add --json, or leave --rows out; lmkbc report shows every row")
    if form and json:
        raise OptionError("format", "is of the table, and --json prints none: give one of the two")
    scores = score(
        run,
        gold,
        edition,
        split=split,
        profile=profile or "",
        strict=strict,
        rows=rows or interval,
        relation=relation,
        limit=limit,
        data=data,
        workspace=workspace,
        trust=trust,
    )
    if scores.evaluation.remarks:
        note(f"{run}: {scores.evaluation.remarks} rows, treated as the official script does")
    for remark in () if scores.changed else SavedRun.at(run).remarks:
        note(f"{run}: {remark}")
    if unreadable := scores.evaluation.unreadable:
        note(f"{run}: {counted(unreadable, 'query has', 'queries have')} no readable answer, counted as wrong")
    table = scores.evaluation.table
    if table.beyond:
        note(table.beyond)
    if json:
        _show_json(scores, rows, interval)
        return
    _print_table(scores, form)
    if interval:
        note(_words(scores))
    if scores.subset.is_whole:
        note_published(scores.edition, scores.split or "val", scores.profile, SavedRun.at(run).text("system") or "")


def _words(scores: Scores) -> str:
    """Return the interval in words."""
    if scores.interval is None:
        return "a relation has one query alone, so F1 has no interval"
    low, high = scores.interval
    return f"macro-F1 {scores.f1:.3f}, 95 % interval {low:.3f} to {high:.3f} (bootstrap over subjects)"


def _show_json(scores: Scores, rows: bool, interval: bool) -> None:
    result, overall = scores.evaluation, scores.overall
    shown: dict[str, Any] = {
        "edition": scores.edition.name,
        "split": scores.split,
        **({"profile": scores.profile} if scores.profile else {}),
        **{column.overall_name: getattr(overall, column.name) for column in OVERALL},
        **({"macro_f1_interval": scores.interval} if interval else {}),
        **_in_sample(scores),
        **({"changed": True} if scores.changed else {}),
        "remarks": {name: getattr(result, name) for name in ("missing", "unknown", "repeated", "malformed")},
        **({"unreadable": result.unreadable} if result.unreadable else {}),
        "relations": {name: asdict(summary) for name, summary in result.table.relations.items()},
    }
    if rows:
        shown["rows"] = [
            {"SubjectEntity": subject, "Relation": relation, **own._asdict()}
            for (subject, relation), own in result.table.rows
        ]
    show_json(shown)


def _in_sample(scores: Scores) -> dict[str, Any]:
    """Return the fields of JSON for scores whose rules were tuned on the split; {} for others."""
    seen = scores.in_sample
    return {"rules_saw_split": True, "out_of_fold": asdict(seen)} if seen else {}


def _print_table(scores: Scores, form: str | None) -> None:
    columns, seen = scores.edition.metric.columns, scores.in_sample
    summaries = {**scores.evaluation.table.relations, "*** Average ***": scores.overall}
    lines: list[list[Any]] = [[name, *map(part.shown, columns)] for name, part in summaries.items()]
    names = ["relation", *(column.label for column in columns)]
    if seen and seen.f1 is not None:
        names.append("F1 out of fold")
        for line in lines[:-1]:
            line.append(seen.relations.get(line[0]))
        lines[-1].append(None if seen.over else seen.f1)
    if form is None:
        show_table(names, lines, title=scores.heading)
    else:
        note(scores.heading)
        show_as(form, names, lines)
