"""A run as a page: its scores beside baselines and published results, its figures, and every row."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import tee
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from lmkbc.edition import Edition, Published
from lmkbc.errors import InputError
from lmkbc.evaluation.official import evaluate
from lmkbc.files.atomic import Buffer, writing
from lmkbc.files.columns import Column, texts_of
from lmkbc.files.database import ByQuery
from lmkbc.files.splits import read_examples
from lmkbc.link.linker import Linking
from lmkbc.plan import Plan
from lmkbc.progress import Report, silent
from lmkbc.recipe import read_recipe
from lmkbc.report import figures
from lmkbc.report.figures import Plot
from lmkbc.report.levels import ScoreLevels
from lmkbc.report.links import TRAIN_ALONE, Evidence, Tracer, linking_of
from lmkbc.report.page import as_toml, packed, rendered, shortened
from lmkbc.report.rows import (
    DRAW,
    EMPTIED,
    UNANSWERED,
    Error,
    RecordedQuery,
    RowCounts,
    mentioned,
    recorded,
    row_of,
    traced,
)
from lmkbc.report.shown_prompts import Shown, asked_by, asked_in, asked_of, tables_of
from lmkbc.run import submission
from lmkbc.run.pipeline import Steps
from lmkbc.run.saved import RunTiming, SavedRun
from lmkbc.scoring.table import COLUMNS, OVERALL, WRONG, Table, Tally
from lmkbc.session.run import Run
from lmkbc.session.subset import WHOLE, Subset
from lmkbc.types import Example, Pair, Query
from lmkbc.workspace import Workspace

Made = TypeVar("Made")
log = logging.getLogger(__name__)

FLOOR = "prior"
"""Recipe of the baseline that uses only the train split."""
FEW = 64
"""Queries of the baseline at once: each has all objects of train as candidates."""
PART = 10_000
"""Approximate number of candidates and replies in a part of the rows."""


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

    @property
    def asked(self) -> list[str]:
        """Return the split, and the part of it that is shown, in words."""
        return [*filter(None, (self.split, self.subset.words))]


def write(space: Workspace, source: ReportInput, path: Path, report: Report = silent) -> Mapping[str, Table]:
    """Write the page to a file, and return the floors. InputError if predictions and gold do not fit.

    Rows are made in parts and kept on disk, so memory does not depend on their number. report: callback for progress.
    """
    edition, run = source.edition, source.run
    table = evaluate(
        run.predictions, source.gold, edition, rows=True, subset=source.subset, unreadable=run.unreadable
    ).table
    with closing(ByQuery()) as held, closing(Buffer()) as parts:
        data = _Data(source, [pair for pair, _ in table.rows], held)
        counts = RowCounts()
        for part in _parts(space, source, table, data, counts, report):
            parts.write(part)
        floors = _floors(space, edition, data, report)
        timing = RunTiming.read(run.path / submission.TIMING)
        values: dict[str, Any] = {
            "title": f"{run.text('system') or run.name} on {', '.join((edition.title, *source.asked))}",
            "about": _about(run, edition, source, timing, list(data.models))
            | ({"scores": table.beyond} if table.beyond else {}),
            "table": table,
            "columns": COLUMNS,
            "overall": OVERALL,
            "floors": floors,
            "below": _below(table, floors),
            "seen": run.in_sample and run.in_sample.of(source.subset, edition),
            "published": _published(edition, source.split) if source.subset.is_whole else [],
            "split": source.split,
            "plots": list(_plots(table, counts, floors, report)) if figures.drawable() else None,
            "confusion": counts.confusion,
            "errors": {error: counts.errors[error] for error in Error},
            "places": {error.name: place for place, error in enumerate(Error)},
            "usage": _usage(timing),
            "counts": _counts(run),
            "marks": counts.marks,
            "recipe": _recipe(run),
            "tuned": _tuned(run),
            "replaced": _replaced(run),
            "prompts": {name: asked for name, asked in sorted(data.prompts.items()) if asked[1]},
            "data": {
                "relations": [*table.relations],
                "errors": [*Error],
                "marks": {mark: _mark(mark) for mark in sorted(counts.marks)},
                "links": edition.target == "id",
            },
            "parts": (piece.decode() for piece in parts.chunks()),
            "count": counts.rows,
        }
        with writing(path) as file:
            for piece in rendered("report.html", **values):
                file.write(piece.encode())
            return floors


def write_beside(run: Run, directory: Path, split: str, report: Report = silent) -> Mapping[str, Table]:
    """Write the page of a run into its directory, with the recorded replies that it read. Return the floors."""
    gold = run.workspace.gold_path(run.edition, split)
    evidence = Evidence.of(run.index, run.search_table, offline=run.offline)
    saved = SavedRun.at(directory)
    source = ReportInput(saved, run.edition, split, gold, run.files, saved.subset, evidence)
    return write(run.workspace, source, directory / submission.REPORT, report)


class _Data:
    """Data of the scored queries, on disk.

    first: the first named query of each relation in the gold file. models: those that recorded files name. prompts:
    relation -> a subject and the prompts about it: the first that files have, else the recipe's for the first query.
    """

    def __init__(self, source: ReportInput, pairs: Sequence[Pair], held: ByQuery) -> None:
        self.pairs, self._held, self._edition = pairs, held, source.edition
        asked, first = frozenset(pairs), dict[str, Query]()
        for example in read_examples(source.gold, source.edition):
            pair = example.query.subject, example.query.relation
            if pair in asked:
                held.add(pair, "example", example)
                if example.query.subject.strip():
                    first.setdefault(example.query.relation, example.query)
        files = (("answer", source.run.predictions, str), ("gold", source.gold, str | list[str]))
        for kind, path, item in files:
            for row in Column(path, source.edition, item).rows():
                if (pair := (row.SubjectEntity, row.Relation)) in asked:
                    held.add(pair, kind, row.objects)
        for pair, fields in recorded(source.run, source.edition, source.replies):
            held.add(pair, "note", fields)
        self.models, self.prompts = dict[str, None](), dict[str, tuple[str, Shown]]()
        for pair, model, prompt in asked_in(source.replies):
            if pair in asked:
                self.models |= {model: None} if model else {}
                held.add(pair, "note", {"prompts": prompt})
                if prompt:
                    self.prompts.setdefault(pair[1], (pair[0], prompt))
        self.first, self._unreadable = [*first.values()], source.run.unreadable

    def examples(self) -> Iterator[tuple[Example, Any]]:
        """Yield each query with its objects, and its gold as the scorer reads it."""
        for pair in self.pairs:
            held = self._held.of(pair)
            if not held["example"]:
                raise InputError(f"the query {pair} is in no example of the gold file: give the file that was scored")
            yield _EXAMPLE.decode(held["example"][-1]), msgspec.msgpack.decode(held["gold"][-1])

    def noted(self) -> Iterator[tuple[Example, Any, RecordedQuery]]:
        """Yield each query with its objects, the run's answer, and what is recorded about it."""
        for pair, (example, _) in zip(self.pairs, self.examples(), strict=True):
            held = self._held.of(pair)
            missing = WRONG if pair in self._unreadable else ()
            answer = texts_of(msgspec.msgpack.decode(held["answer"][-1])) if held["answer"] else missing
            yield example, answer, RecordedQuery.of(held["note"])


_EXAMPLE = msgspec.msgpack.Decoder(Example)


def _parts(
    space: Workspace, source: ReportInput, table: Table, data: _Data, counts: RowCounts, report: Report
) -> Iterator[bytes]:
    """Yield the elements that hold the rows for the page's script, and count all rows."""
    edition, relations = source.edition, [*table.relations]
    linking = _of_recipe(source.run, lambda: linking_of(source.run), Linking(), "links are explained with the defaults")
    tracer = Tracer(space, edition, linking, source.evidence) if edition.target == "id" else None
    scores, total = iter(score for _, score in table.rows), len(table.rows)
    stream, ask = data.noted(), _asking(space, source, data)
    while some := _some(stream, ask):
        report("rows (queries)", counts.rows, total)
        notes = [(example.query, note) for example, _, note in some]
        if tracer:
            notes = list(traced(tracer, notes))
        rows = []
        for (example, answer, _), (_, note) in zip(some, notes, strict=True):
            row = row_of(edition, example, answer, next(scores), note)
            counts.add(row)
            rows.append(shortened(row))
        about = tracer.about(mentioned(rows)) if tracer else {}
        yield b'<script type="application/octet-stream" class="part">%b</script>\n' % packed(rows, relations, about)
    report("rows (queries)", total, total)


def _asking(space: Workspace, source: ReportInput, data: _Data) -> Callable[[Query], Shown] | None:
    """Return a function that gives the recipe's prompts for a query; None if the train split is not here.

    Those of each relation's first query stand in `data.prompts` afterwards, unless a file has one of the relation.
    """

    def tried() -> Callable[[Query], Shown]:
        ask = asked_by(source.run, Run(workspace=space, edition=source.edition, offline=True))
        data.prompts = {query.relation: (query.subject, ask(query)) for query in data.first} | data.prompts
        return ask

    return _of_recipe(source.run, tried, None, "no prompts are shown") if space.has_data(source.edition) else None


def _some(
    stream: Iterator[tuple[Example, Any, RecordedQuery]], ask: Callable[[Query], Shown] | None
) -> list[tuple[Example, Any, RecordedQuery]]:
    """Return the next queries of a stream, as many as a part holds. ask: prompts of queries whose files have none."""
    some, size = list[tuple[Example, Any, RecordedQuery]](), 0
    for example, answer, note in stream:
        asked = replace(note, prompts=note.prompts or (ask(example.query) if ask else ()))
        some.append((example, answer, asked))
        size += 1 + len(note.candidates) + len(note.replies) + len(asked.prompts)
        if size >= PART:
            break
    return some


def _about(
    run: SavedRun, edition: Edition, source: ReportInput, timing: RunTiming, recorded_models: list[str]
) -> dict[str, str]:
    answered = run.manifest.get("models")
    models = [str(model) for model in answered] if isinstance(answered, list) else []
    models = models or [name for name in (run.text("model"),) if name] or recorded_models
    seen, cost = run.in_sample, timing.total("cost")
    fields = {
        "system": run.text("system") or run.name,
        "models" if len(models) > 1 else "model": ", ".join(models),
        "tokens": f"{timing.tokens:,}" if timing.tokens else None,
        "cost": None if cost is None else f"{cost:.4f}",
        "edition and split": ", ".join((edition.name, *source.asked)),
        "objects kept": run.table("selection").get("how"),
        "in labelled rows": _stated(run),
        "in sample": seen.of(source.subset, edition).remark if seen else None,
        "predictions": "; ".join(run.remarks),
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


def _of_recipe(run: SavedRun, read: Callable[[], Made], other: Made, so: str) -> Made:
    """Return what a run's recipe says. If this version cannot read that part of it, warn and return `other`."""
    try:
        return read()
    except InputError as error:
        log.warning("%s: %s; %s", run.path, error, so)
        return other


def _floors(space: Workspace, edition: Edition, data: _Data, report: Report) -> dict[str, Table]:
    """Return the scores of the class prior (if the train split is here), and of a file of empty answers."""
    made, count = {}, len(data.pairs)
    if space.has_data(edition):
        recipe, tally = read_recipe(space, FLOOR), Tally(edition.metric)
        steps = Steps(Plan.of(Run(workspace=space, edition=edition, offline=True), recipe), report)
        asked, truth = tee(data.examples())
        for block in steps.over((example.query for example, _ in asked), count, FEW):
            for prediction in recipe.select.select_all(block.sets):
                query, (_, gold) = prediction.query, next(truth)
                tally.add(0, query.subject, query.relation, submission.answers(edition, prediction), gold)
        made["class prior"] = tally.table()
    empty = Tally(edition.metric)
    for example, gold in data.examples():
        empty.add(0, example.query.subject, example.query.relation, (), gold)
    made["all-empty file"] = empty.table()
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


def _plots(table: Table, counts: RowCounts, floors: Mapping[str, Table], report: Report) -> Iterator[Plot]:
    values = {name: {key: one.f1 for key, one in floor.relations.items()} for name, floor in floors.items()}
    pool = ScoreLevels.union([own.levels() for own in counts.scores.values()])
    several = len(table.relations) > 1  # for one relation, a figure shows no more than the table
    scored = pool.spread >= figures.SPREAD
    own = figures.panels_of(counts.scores, list(table.relations))
    drawn: tuple[tuple[object, Callable[[], Plot]], ...] = (
        (several, lambda: figures.scores(table.relations, values)),
        (several and scored, lambda: figures.cuts(counts.scores, list(table.relations))),
        (several, lambda: figures.precision_recall(table.relations)),
        (counts.sizes, lambda: figures.sizes(counts.sizes)),
        (scored, lambda: figures.distributions(pool)),
        (scored and (several or not own), lambda: figures.reliability(pool)[0]),
        (own, lambda: figures.curves(own, counts.gold)),
        (own, lambda: figures.reliabilities(own)),
    )
    wanted = [draw for there, draw in drawn if there]
    for done, draw in enumerate(wanted):
        report("figures", done, len(wanted))
        yield draw()


LAST = ", of the last command that asked"
"""Mark of amounts that are not of the whole run."""

_SENT = {"requests": f"requests sent, retries included{LAST}", "calls": f"requests answered{LAST}"}
"""Figures of a server -> their names."""

_USED = {"calls": "prompts read", "from_store": "draws from the store"}
"""Figures of any model -> their names, where these differ."""


def _usage(timing: RunTiming) -> list[tuple[str, str, str]]:
    """Return what a run used, by step: seconds, tokens, requests or prompts, cost."""
    lines = [] if timing.seconds is None else [("all steps", f"seconds{LAST}", _number(timing.seconds))]
    for step, values in timing.usage.items():
        names = _USED | (_SENT if "requests" in values else {})
        for name, value in values.items():
            own = name.removeprefix("spent_")
            lines.append((step, names.get(name, own if own == name else f"{own}{LAST}"), _number(value)))
    return lines


def _counts(run: SavedRun) -> list[tuple[str, str, str]]:
    """Return the numbers of queries, draws and objects: what is counted, its mark on rows, and how many."""
    lines = []
    for name, value in run.table("counts").items():
        parts = value.items() if isinstance(value, dict) else [("", value)]
        for kind, count in parts:
            mark = DRAW + kind if name == "draws" else str(kind or name)
            what = f"dropped objects: {_mark(kind)}" if name == "dropped_objects" else _mark(mark)
            lines.append((what, mark, _number(count)))
    return lines


_COUNTED = {
    "objects": "objects kept",
    "stated_by_labels": "objects kept that labelled rows state",
    "empty": "empty answers",
    EMPTIED: "empty answers since all named objects were dropped",
    UNANSWERED: "queries that failed",
}
"""Counts of a run in words; the others are words already."""


def _mark(name: str) -> str:
    """Return a mark of rows, or what a run counts, in words."""
    return (submission.REASONS | _COUNTED).get(name, name)


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int | float) else "-" if value is None else str(value)


def _tuned(run: SavedRun) -> str:
    """Return the thresholds that selected the objects, in words; "" if the recipe's own rule did."""
    chosen = run.table("selection")
    return str(chosen.get("how")) if "data_sha256" in chosen else ""


def _replaced(run: SavedRun) -> str:
    """Return which model was asked in place of one that the recipe names; "" if there is none."""
    none: list[Mapping[str, Any]] = []
    tables = _of_recipe(run, lambda: [*tables_of(run)], none, "no model is named that another one replaced")
    named = dict.fromkeys(str(one["model"]) for one in tables if one.get("model"))
    pairs = ((name, asked_of(run, [name])) for name in named)
    return "; ".join(f"{asked} was asked in place of {name}" for name, asked in pairs if asked != name)


def _recipe(run: SavedRun) -> str:
    """Return the manifest's recipe as TOML, without a rule that thresholds replaced."""
    tables = run.table("recipe")
    return as_toml({step: table for step, table in tables.items() if step != "select" or not _tuned(run)})
