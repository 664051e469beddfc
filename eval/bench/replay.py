"""Scores of recorded answers of real models in their authors' own recipe, and under our rules.

Each row shows macro P, R and F1 as the authors print them. Then it shows the engine's figures for the same answers with
their recipe, by an earlier script if the authors used one. Last is F1 of the same answers under rules tuned per
relation, out of fold; queries that no model answered count as wrong. A file of predictions is only scored. If figures
differ in three digits, the reasons stand below the table.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from eval.bench import parsed
from eval.bench.figures import Table
from eval.bench.recorded import (
    BERT,
    GEMMA,
    GPT3,
    GPT4,
    GPT35,
    QWEN,
    RECODE,
    context_of,
    proposed,
    row_parser,
    tuned_rules,
)
from lmkbc.edition import Edition
from lmkbc.evaluation.official import evaluate
from lmkbc.files.jsonl import read_jsonl
from lmkbc.files.splits import QueryRow
from lmkbc.plan import Plan
from lmkbc.recipe import make_recipe, read_file, read_recipe
from lmkbc.run.pipeline import propose
from lmkbc.run.submission import answers, prediction_lines
from lmkbc.scoring.matchers import number
from lmkbc.scoring.table import Summary
from lmkbc.session.run import Run
from lmkbc.tune.tuning_set import TRIALS, TuningOptions
from lmkbc.types import CandidateSet, Example
from lmkbc.workspace import Workspace

UNCLEANED: Mapping[str, Any] = {
    "clean": {"subject": False},
    "link": {
        "component": "minimal23/words",
        "evidence": ["search"],
        "default": ["first"],
        "typed": [],
        "searched": {"nobel-prize": "{{ object }} nobel prize"},
    },
}
"""Settings to link Minimal Probe's answers as before the author's cleaning."""

READING = "replies that go on behind their tuple gave the author its subject and phrase for objects"
COUNTS = "the author's file has counts as JSON numbers, which the script takes for wrong"
PRIZES = "the author's searches, such as 'Physics nobel prize', are not among the recorded ones"
RIVERS = "which hits are rivers is not recorded, nor are all searches for 'Danube river' and the like"


@dataclass(frozen=True, kw_only=True)
class Row:
    """Answers below recorded/, the recipe that reads them, and their authors' figures: F1, or P, R and F1.

    label: the row's name in documents. system: "" for a file of predictions. changes: tables in place of the recipe's.
    rules: families of rules whose parameters the authors fitted on the same split; here they are tuned out of fold.
    profile: the authors' scorer. why: reason of a difference. sent: file of the rows that the authors sent for test.
    With it, files are patterns, and the figure is the number of rows with the same set of objects. Numbers may differ
    by one in a thousand.
    """

    label: str
    edition: str
    files: tuple[str, ...]
    system: str = ""
    authors: tuple[float, ...]
    profile: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict)
    rules: tuple[str, ...] = ()
    why: str = ""
    sent: str = ""


OTHER_FLOORS = "their thresholds are of five folds of this file, the recipe's of their last run"
ROWS = {
    "BERT-2022": Row(
        label="2022 dev, BERT baseline",
        edition="2022",
        files=("2022-dev/baseline.candidates.jsonl.gz",),
        system="bl22",
        authors=(0.958, 0.304, 0.309),
    ),
    "GPT-3": Row(
        label="2022 dev, GPT-3 with optimised prompts",
        edition="2022",
        files=(GPT3,),
        system="prop22",
        authors=(0.736, 0.699, 0.697),
        profile="2022-legacy",
    ),
    "GPT-3-checked": Row(
        label="2022 dev, GPT-3, facts checked",
        edition="2022",
        files=("2022-dev/gpt3-optimized_factcheck.candidates.jsonl.gz",),
        system="prop22",
        authors=(0.741, 0.692, 0.698),
        profile="2022-legacy",
    ),
    "GPT-4-raw": Row(
        label="2023 val, GPT-4, as linked",
        edition="2023",
        files=(GPT4,),
        system="minimal23",
        authors=(0.502,),
        changes=UNCLEANED,
        why=f"+.047: {COUNTS}; +.005: {READING}; -.011: {PRIZES}; +.002: other hits",
    ),
    "GPT-4": Row(
        label="2023 val, GPT-4, cleaned",
        edition="2023",
        files=(GPT4,),
        system="minimal23",
        authors=(0.612,),
        why=f"+.003: {READING}; +.001: {PRIZES}",
    ),
    "GPT-3.5-raw": Row(
        label="2023 val, GPT-3.5, as linked",
        edition="2023",
        files=(GPT35,),
        system="minimal23",
        authors=(0.419,),
        changes=UNCLEANED,
        why=f"+.022: {COUNTS}; +.001: {READING}; -.003: {PRIZES}",
    ),
    "GPT-3.5": Row(
        label="2023 val, GPT-3.5, cleaned",
        edition="2023",
        files=(GPT35,),
        system="minimal23",
        authors=(0.517,),
        why=f"-.002: {RIVERS}",
    ),
    "organisers-BERT": Row(
        label="2023 val, the organisers' BERT file",
        edition="2023",
        files=("2023-val/organisers-bert.predictions.jsonl",),
        authors=(0.368, 0.161, 0.142),
        profile="2023-legacy",
    ),
    "organisers-GPT-3": Row(
        label="2023 val, the organisers' GPT-3 file",
        edition="2023",
        files=("2023-val/organisers-gpt3-ned.predictions.jsonl",),
        authors=(0.308, 0.21, 0.218),
        profile="2023-legacy",
    ),
    "BERT": Row(
        label="2023 val, BERT candidates",
        edition="2023",
        files=(BERT,),
        system="recorded",
        authors=(0.296,),
        rules=("cutoff",),
        why="the folds are others",
    ),
    "BERT-recode": Row(
        label="2023 val, BERT with pre-training and recode",
        edition="2023",
        files=(RECODE,),
        system="recorded",
        authors=(0.318,),
        rules=("cutoff",),
        why="the folds are others",
    ),
    "BERT-yang23": Row(
        label="2023 val, BERT candidates, last thresholds",
        edition="2023",
        files=(BERT,),
        system="yang23",
        authors=(0.296,),
        why=OTHER_FLOORS,
    ),
    "BERT-recode-yang23": Row(
        label="2023 val, BERT with pre-training and recode, last thresholds",
        edition="2023",
        files=(RECODE,),
        system="yang23",
        authors=(0.318,),
        why=OTHER_FLOORS,
    ),
    "duke26": Row(
        label="2026 test, Muse-Glimmer, all channels",
        edition="2026",
        files=("2026-test/muse/*.jsonl.gz", "2026-test/muse__*.jsonl.gz"),
        system="duke26",
        authors=(475,),
        sent="2026-test/muse/expected.jsonl",
    ),
    "duke26-plain": Row(
        label="2026 test, Muse-Glimmer, plain",
        edition="2026",
        files=("2026-test/muse/*.jsonl.gz", "2026-test/muse__*.jsonl.gz"),
        system="duke26-plain",
        authors=(475,),
        sent="2026-test/muse/expected_plain.jsonl",
    ),
    "cs2-26": Row(
        label="2026 test, Gemma, areas, cities and awards",
        edition="2026",
        files=("2026-test/cs2/*.jsonl.gz",),
        system="cs2-26",
        authors=(210,),
        sent="2026-test/cs2/expected.jsonl",
    ),
    "Qwen": Row(
        label="2026 val, Qwen, ten samples", edition="2026", files=(QWEN,), system="chironk26", authors=(0.463,)
    ),
    "Gemma": Row(
        label="2026 val, Gemma, one sample", edition="2026", files=(GEMMA,), system="chironk26", authors=(0.425,)
    ),
    "Qwen+Gemma": Row(
        label="2026 val, Qwen and Gemma, which must agree",
        edition="2026",
        files=(QWEN, GEMMA),
        system="chironk26",
        authors=(0.451,),
    ),
}


def main(argv: Sequence[str]) -> None:
    parser = row_parser(__doc__, *ROWS, figures=True)
    parser.add_argument("--untuned", action="store_true", help="leave out our rules, which take most of the time")
    given = parsed(parser, argv, rows=["organisers-GPT-3", "Gemma"], folds=2)
    workspace, table = Workspace(data=given.data), Table("replay", "answers", given.figures)
    notes = []
    for name in given.rows:
        row = ROWS[name]
        edition = workspace.edition(row.edition)
        if row.sent:
            same = same_rows(workspace, edition, row)
            cells = {"recipe": recipe_of(row), "scorer": "rows", "authors' own, P / R / F1": f"{row.authors[0]:.0f}"}
            table.add(row.label, cells | {"replayed": str(same), "our rules": "-"}, failed=0)
            continue
        run = context_of(workspace, edition, row.files)
        examples = workspace.examples(edition, edition.held_out)
        shown, failed = shown_of(run, row, examples, given)
        ours = "-"
        if row.system and not given.untuned:
            sets = proposed(run, read_recipe(workspace, "recorded"), examples)
            ours = f"{tuned(run, sets, examples, ('cutoff',) if given.small else (), given):.3f}"
        cells = {
            "recipe": recipe_of(row),
            "scorer": f"`{row.profile}`" if row.profile else "today's",
            "authors' own, P / R / F1": digits(row.authors),
            "replayed": digits(shown),
            "our rules": ours.lstrip("0"),
        }
        table.add(row.label, cells, failed=failed)
        if digits(row.authors) != digits(shown):
            notes.append(f"\n{row.label}: {row.why or 'not known'}.")
    print(*notes, sep="\n")


def same_rows(workspace: Workspace, edition: Edition, row: Row) -> int:
    """Return the number of rows that the recipe makes of the recorded channels as the authors sent them."""
    folder = workspace.split_path(edition, "test").parent.parent / "recorded"
    run = context_of(workspace, edition, [str(path) for name in row.files for path in sorted(folder.glob(name))])
    recipe = read_recipe(workspace, row.system)
    made = recipe.select.select_all(propose(Plan.of(run, recipe), workspace.queries(edition, "test")).sets)
    kept = {(one.query.subject, one.query.relation): set(answers(edition, one)) for one in made}
    sent = read_jsonl(folder / row.sent, QueryRow)
    return sum(
        _same(kept[one.SubjectEntity, one.Relation], {str(name) for name in one.ObjectEntities or ()}) for one in sent
    )


def _same(kept: Set[str], sent: Set[str]) -> bool:
    values = [number(text) for text in (*kept, *sent)]
    if len(kept) == len(sent) == 1 and None not in values:
        own, other = (value or 0.0 for value in values)
        return math.isclose(own, other, rel_tol=1e-3)
    return kept == sent


def digits(values: Sequence[float]) -> str:
    """Return figures with three digits."""
    return " / ".join(f"{value:.3f}".lstrip("0") for value in values)


def recipe_of(row: Row) -> str:
    """Return the description of a row's recipe for documents."""
    if row.rules or not row.system:
        return "thresholds per relation" if row.rules else "-"
    return f"`{row.system}`{', uncleaned' if row.changes else ''}"


def shown_of(
    run: Run, row: Row, examples: Sequence[Example], given: argparse.Namespace
) -> tuple[tuple[float, ...], int]:
    """Return the engine's figures, as many as the authors print, and the number of failed queries."""
    if not row.system:
        return _figures(scored(run, row, run.files[0]), row), 0
    space = run.workspace
    file = replace(read_file(space.recipe_path(row.system)), **row.changes)
    recipe = make_recipe(row.system, file, space.relations)
    sets = proposed(run, recipe, examples)
    failed = sum(candidates.failed for candidates in sets)
    if row.rules:
        return (tuned(run, sets, examples, row.rules, given),), failed
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "predictions.jsonl"
        path.write_bytes(prediction_lines(run.edition, recipe.select.select_all(sets)))
        return _figures(scored(run, row, path), row), failed


def scored(run: Run, row: Row, predictions: Path) -> Summary:
    """Return the official average of a file of predictions, by the authors' scorer."""
    edition = run.edition.under(row.profile) if row.profile else run.edition
    return evaluate(predictions, run.workspace.gold_path(edition, edition.held_out), edition).table.overall


def tuned(
    run: Run,
    sets: Sequence[CandidateSet],
    examples: Sequence[Example],
    rules: Sequence[str],
    given: argparse.Namespace,
) -> float:
    """Return F1 out of fold of rules tuned per relation. rules: families to choose from, all if empty."""
    trials = 0 if given.small else TRIALS
    how = TuningOptions(rules=tuple(rules) or None, folds=given.folds, trials=trials, seed=given.seed)
    own = read_recipe(run.workspace, "recorded").select
    return tuned_rules(sets, examples, run.edition, run.relations, how, own).cv_macro_f1


def _figures(summary: Summary, row: Row) -> tuple[float, ...]:
    return (summary.p, summary.r, summary.f1)[-len(row.authors) :]
