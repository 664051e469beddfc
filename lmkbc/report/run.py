"""A run as a page: its scores beside baselines and published results, its figures, and every row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmkbc.edition import Edition, Published
from lmkbc.evaluate import evaluate
from lmkbc.files.atomic import write_bytes
from lmkbc.files.columns import Given
from lmkbc.files.jsonl import read_examples
from lmkbc.pipeline import propose
from lmkbc.progress import Report, silent
from lmkbc.recipe import read_recipe
from lmkbc.report import figures, panels
from lmkbc.report.figures import Plot
from lmkbc.report.links import TRAIN_ALONE, Evidence, Tracer, linking_of
from lmkbc.report.page import as_toml, packed, render
from lmkbc.report.prompts import RecordedPrompts, ShownPrompt, asked_in, worded
from lmkbc.report.rows import Error, Row, mentioned, recorded, rows_of, traced
from lmkbc.run import submission
from lmkbc.run.base import Run
from lmkbc.run.saved import SavedRun, read_gold
from lmkbc.run.subset import WHOLE, Subset
from lmkbc.run.timing import RunTiming
from lmkbc.scoring.table import Table
from lmkbc.types import Query
from lmkbc.workspace import Workspace

FLOOR = "prior"
"""Recipe of the baseline that uses only the train split."""


@dataclass(frozen=True, slots=True)
class ReportInput:
    """Input of a report.

    split: name of the split as the user gave it. replies: completions files whose raw texts are shown. subset: part of
    the split to show. evidence: sources that explain links.
    """

    run: SavedRun
    edition: Edition
    split: str
    gold: Path
    replies: Sequence[Path] = ()
    subset: Subset = WHOLE
    evidence: Evidence = TRAIN_ALONE


def page(space: Workspace, source: ReportInput, report: Report = silent) -> str:
    """Return the page. InputError if predictions and gold do not fit. report: callback for progress."""
    edition, run = source.edition, source.run
    answers = run.answers(edition)
    asked = source.subset.rows(read_gold(source.gold, edition).items(), lambda row: row[0][1])
    gold = {pair: value for pair, value in asked if _asked(run, pair in answers)}
    shown = Given.of(run.predictions, edition.column, answers)
    table = evaluate(shown, Given.of(source.gold, edition.column, gold), edition, rows=True).table
    examples = [x for x in read_examples(source.gold, edition) if (x.query.subject, x.query.relation) in gold]
    notes, tracer = recorded(run, edition, source.replies), None
    if edition.target == "id":
        tracer = Tracer(space, edition, linking_of(run), source.evidence)
        notes = traced(tracer, examples, notes, report)
    rows = rows_of(edition, examples, answers, table.rows, notes, report)
    queries = [example.query for example in examples]
    floors = _floors(space, edition, gold, queries, report)
    timing = RunTiming.read(run.path / submission.TIMING)
    recorded_prompts = asked_in(source.replies, gold)
    return render(
        "report.html",
        title=f"{run.text('system') or run.name} on LM-KBC {edition.name}, {source.split}",
        about=_about(run, edition, source, timing, recorded_prompts),
        table=table,
        floors=floors,
        below=_below(table, floors),
        seen=run.in_sample,
        whole=source.subset.is_whole and not run.is_subset,
        published=_published(edition, source.split),
        split=source.split,
        plots=list(_plots(table, rows, floors, report)) if figures.drawable() else None,
        confusion=_confusion(rows),
        errors={error: sum(error in row.errors for row in rows) for error in Error},
        places={error.name: place for place, error in enumerate(Error)},
        usage=_usage(timing),
        counts=_counts(run),
        recipe=_recipe(run),
        tuned=_tuned(run),
        prompts=_prompts(space, source, recorded_prompts, queries),
        data=packed(rows, tracer.about(mentioned(rows)) if tracer else None),
        count=len(rows),
    )


def write_beside(run: Run, directory: Path, split: str, report: Report = silent) -> None:
    """Write the page of a run into its directory, with the recorded replies that the run read."""
    gold = run.workspace.gold_path(run.edition, split)
    evidence = Evidence.of(run.index, run.search_table, offline=run.offline)
    source = ReportInput(SavedRun.at(directory), run.edition, split, gold, run.files, evidence=evidence)
    write_bytes(directory / submission.REPORT, page(run.workspace, source, report).encode())


def _asked(run: SavedRun, answered: bool) -> bool:
    """Return whether a gold query counts. If the run answered a subset of the split, only answered queries count."""
    return answered or not run.is_subset


def _about(
    run: SavedRun, edition: Edition, source: ReportInput, timing: RunTiming, recorded_prompts: RecordedPrompts
) -> dict[str, str]:
    answered = run.manifest.get("models")
    models = [str(model) for model in answered] if isinstance(answered, list) else []
    models = models or [name for name in (run.text("model"),) if name] or list(recorded_prompts.models)
    seen, cost = run.in_sample, timing.total("cost")
    fields = {
        "system": run.text("system") or run.name,
        "models" if len(models) > 1 else "model": ", ".join(models),
        "tokens": f"{timing.tokens:,}" if timing.tokens else recorded_prompts.tokens,
        "cost": None if cost is None else f"{cost:.4f}",
        "edition and split": f"{edition.name}, {source.split}",
        "objects kept": run.table("selection").get("how"),
        "in labelled rows": _stated(run),
        "in sample": seen.remark(whole=source.subset.is_whole and not run.is_subset) if seen else None,
        "average": "mean over relations" if edition.metric.average == "relation" else "mean over rows",
    }
    return {name: str(value) for name, value in fields.items() if value}


def _stated(run: SavedRun) -> str:
    """Return how many kept objects labelled rows state from the other side, in words; "" if none."""
    counts, splits = run.table("counts"), run.manifest.get("learn_from")
    if not counts.get("stated_by_labels") or not isinstance(splits, list):
        return ""
    named = ", ".join(map(str, splits))
    return f"{counts['stated_by_labels']} of {counts.get('objects')} objects, from the other side ({named})"


def _prompts(
    space: Workspace, source: ReportInput, recorded_prompts: RecordedPrompts, queries: Sequence[Query]
) -> dict[str, Sequence[ShownPrompt]]:
    """Return a prompt per relation: the recorded one, else the recipe's, if the train split is here."""
    own: dict[str, Sequence[ShownPrompt]] = {}
    if space.has_data(source.edition):
        own = worded(source.run, Run(workspace=space, edition=source.edition, offline=True), queries)
    relations = dict.fromkeys(query.relation for query in queries)
    return {name: found for name in relations if (found := recorded_prompts.prompts.get(name) or own.get(name))}


def _floors(
    space: Workspace, edition: Edition, gold: Mapping[Any, Any], queries: Sequence[Query], report: Report
) -> dict[str, Table]:
    """Return the scores of the class prior (if the train split is here), and of a file of empty answers."""
    made = {}
    if space.has_data(edition):
        recipe = read_recipe(space, FLOOR)
        run = Run(workspace=space, edition=edition, offline=True)
        predictions = recipe.select.select_all(propose(run, recipe, queries, report).sets)
        kept = {(x.query.subject, x.query.relation): submission.answers(edition, x) for x in predictions}
        made["class prior"] = edition.metric.evaluate(kept, gold)
    made["all-empty file"] = edition.metric.evaluate(dict.fromkeys(gold, ()), gold)
    return made


def _below(table: Table, floors: Mapping[str, Table]) -> dict[str, str]:
    """Return relation -> the baselines above its F1, in words; "" is the key of the average."""
    made = {}
    for name, own in {**table.relations, "": table.overall}.items():
        higher = [
            floor
            for floor, reached in floors.items()
            if round((reached.relations[name] if name else reached.overall).f1 - own.f1, 3) > 0
        ]
        made[name] = f"below {' and '.join(higher)}" if higher else ""
    return made


def _published(edition: Edition, split: str) -> list[Published]:
    """Return published results by today's scorer: those of the same split first, each group best first."""
    here = edition.leaderboard(split)
    others = [result for result in edition.published if not result.profile and result not in here]
    return here + sorted(others, key=lambda result: (result.split, -result.f1))


def _plots(table: Table, rows: Sequence[Row], floors: Mapping[str, Table], report: Report) -> Iterator[Plot]:
    values = {name: {key: one.f1 for key, one in floor.relations.items()} for name, floor in floors.items()}
    pool = figures.candidates(rows)
    several = len(table.relations) > 1  # for one relation, a figure shows no more than the table
    scored = len({one.score for one in pool}) > 1  # if all scores are equal, a figure shows nothing
    own = panels.shown(pool, list(table.relations))
    gold = {name: sum(row.score.gold for row in rows if row.pair[1] == name) for name in own}
    drawn: tuple[tuple[object, Callable[[], Plot]], ...] = (
        (several, lambda: figures.scores(table.relations, values)),
        (several and scored, lambda: figures.cuts(pool, list(table.relations))),
        (several, lambda: figures.precision_recall(table.relations)),
        (rows, lambda: figures.sizes(rows)),
        (scored, lambda: figures.distributions(pool)),
        (scored and (several or not own), lambda: figures.reliability(pool)[0]),
        (own, lambda: panels.curves(own, gold)),
        (own, lambda: panels.reliabilities(own)),
    )
    wanted = [draw for there, draw in drawn if there]
    for done, draw in enumerate(wanted):
        report("figures", done, len(wanted))
        yield draw()


def _confusion(rows: Sequence[Row]) -> list[list[int]]:
    """Return counts of queries. Rows: gold is empty, gold has objects. Columns: answer is empty, answer has objects."""
    counts = [[0, 0], [0, 0]]
    for row in rows:
        counts[bool(row.score.gold)][bool(row.score.predicted)] += 1
    return counts


def _usage(timing: RunTiming) -> list[tuple[str, str, str]]:
    """Return what a run used, by step: seconds, tokens, calls, cost."""
    lines = [] if timing.seconds is None else [("whole run", "seconds", _number(timing.seconds))]
    for step, values in timing.usage.items():
        lines += [(step, str(name), _number(value)) for name, value in values.items()]
    return lines


def _counts(run: SavedRun) -> list[tuple[str, str, str]]:
    """Return the numbers of queries, draws and objects, by kind."""
    lines = []
    for name, value in run.table("counts").items():
        parts = value.items() if isinstance(value, dict) else [("", value)]
        lines += [(str(name).replace("_", " "), str(kind), _number(count)) for kind, count in parts]
    return lines


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def _tuned(run: SavedRun) -> str:
    """Return the thresholds that selected the objects, in words; "" if the recipe's own rule did."""
    chosen = run.table("selection")
    return str(chosen.get("how")) if "data_sha256" in chosen else ""


def _recipe(run: SavedRun) -> str:
    """Return the manifest's recipe as TOML, without a rule that thresholds replaced."""
    tables = run.table("recipe")
    return as_toml({step: table for step, table in tables.items() if step != "select" or not _tuned(run)})
