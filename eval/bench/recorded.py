"""Scores of recorded answers of real models: reported by their authors, and here, untuned and tuned out of fold.

    python eval/bench/recorded.py [--data DIR] [--trials N] [--folds N] [--seed N] [--figures FILE] [ROW ...]

Each row shows official macro-F1. First is the figure that the answers' authors report. Then "untuned": parsing,
cleaning and linking with the recipe's one rule. Then rules tuned per relation: out of fold, out of fold by exact sweeps
alone (without Optuna), and in sample. The gain of tuning is "out of fold" less "untuned". Then, on the same split, the
class prior and an empty file. Queries that no model answered count as wrong. Last are the seconds of proposing and of
tuning.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import figures

from lmkbc.cli.terminal import error_status
from lmkbc.edition import Edition
from lmkbc.pipeline import propose
from lmkbc.recipe import Recipe, read_recipe
from lmkbc.run.base import Run
from lmkbc.tune.defaults import FOLDS, SEED, TRIALS
from lmkbc.tune.tune import official, tune
from lmkbc.types import CandidateSet, Example
from lmkbc.workspace import Workspace

SEARCH = Path("wikidata/search_first_hit.json")


class Row(NamedTuple):
    """One row: files below recorded/, and the reported score of their authors (None: not reported).

    label: its name in documents.
    """

    label: str
    edition: str
    files: tuple[str, ...]
    authors: float | None
    system: str = "recorded"


GPT4 = "2023-val/gpt4_n_0_m_0_c_0.jsonl.gz"
GPT35 = "2023-val/gpt3.5-turbo_n_0_m_0_c_0.jsonl.gz"
BERT = "2023-val/bert-base-cased.candidates.jsonl.gz"
RECODE = "2023-val/bert-base-cased+pretrain+recode.candidates.jsonl.gz"
GPT3 = "2022-dev/gpt3-optimized.candidates.jsonl.gz"
QWEN = "2026-val/qwen__self_consistency.jsonl.gz"
GEMMA = "2026-val/gemma__independent.jsonl.gz"
ROWS = {
    "GPT-4": Row("2023 val, GPT-4 zero-shot", "2023", (GPT4,), 0.612),
    "GPT-3.5": Row("2023 val, GPT-3.5 zero-shot", "2023", (GPT35,), 0.517),
    "GPT-4+GPT-3.5": Row("2023 val, both pooled", "2023", (GPT4, GPT35), None),
    "BERT": Row("2023 val, BERT candidates", "2023", (BERT,), 0.296),
    "BERT-recode": Row("2023 val, BERT with pre-training and recode", "2023", (RECODE,), 0.318),
    "BERT-recode+embedded": Row(
        "2023 val, BERT with recode, pooled with the embedded default", "2023", (RECODE,), 0.323, "recorded-embedded"
    ),
    "GPT-3": Row("2022 dev, GPT-3 with optimised prompts", "2022", (GPT3,), 0.697),
    "Qwen": Row("2026 val, Qwen, ten samples", "2026", (QWEN,), 0.463),
    "Qwen+Gemma": Row("2026 val, Qwen and Gemma", "2026", (QWEN, GEMMA), 0.451),
}


def row_parser(description: str | None, rows: Iterable[str]) -> argparse.ArgumentParser:
    """Return a parser with the shared options of benchmarks of recorded answers: rows, data, folds, seed, figures."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", choices=[*rows, []], metavar="ROW", help=f"of {', '.join(rows)}")
    parser.add_argument("--data", type=Path, help="directory of the official splits (default: $LMKBC_DATA)")
    parser.add_argument("--folds", type=int, default=FOLDS)
    parser.add_argument("--seed", type=int, default=SEED)
    figures.option(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    parser = row_parser(__doc__, ROWS)
    parser.add_argument("--trials", type=int, default=TRIALS)
    given = parser.parse_args(argv)
    workspace = Workspace(data=given.data)
    floors: dict[str, tuple[float, float]] = {}
    values: dict[str, dict[str, str]] = {}
    print(
        "recorded answers      edition  authors  untuned  out of fold   swept  in sample  prior  empty  failed  "
        "propose  tune"
    )
    for name in given.rows or ROWS:
        row = ROWS[name]
        edition = workspace.edition(row.edition)
        examples = workspace.examples(edition, edition.held_out)
        if row.edition not in floors:
            floors[row.edition] = (
                untuned(Run(workspace=workspace, edition=edition), examples, read_recipe(workspace, "prior")),
                untuned(Run(workspace=workspace, edition=edition), examples, read_recipe(workspace, "bl22-empty")),
            )
        start = time.perf_counter()
        context, recipe = context_of(workspace, edition, row.files), read_recipe(workspace, row.system)
        proposals = propose(context, recipe, [example.query for example in examples])
        proposed = time.perf_counter()
        tuned = tune(
            proposals.sets,
            examples,
            edition,
            relations=context.relations,
            folds=given.folds,
            trials=given.trials,
            seed=given.seed,
        )
        done = time.perf_counter()
        prior, empty = floors[row.edition]
        authors = "-" if row.authors is None else f"{row.authors:.3f}"
        own = scored(recipe, proposals.sets, examples, edition)
        scores = {"untuned": own, "out of fold": tuned.cv_macro_f1, "in sample": tuned.insample_macro_f1}
        values[row.label] = {"their authors": authors} | {name: f"{score:.3f}" for name, score in scores.items()}
        print(
            f"{name:20} {row.edition:>7}  {authors:>7}  {own:7.4f}  "
            f"{tuned.cv_macro_f1:11.4f}  {tuned.cv_macro_f1_without_optuna:6.4f}  {tuned.insample_macro_f1:9.4f}  "
            f"{prior:5.3f}  {empty:5.3f}  {tuned.failed:6}  {proposed - start:6.1f}s  "
            f"{done - proposed:3.0f}s",
            flush=True,
        )
    figures.record(given.figures, "recorded", values)


def context_of(workspace: Workspace, edition: Edition, files: Sequence[str] = ()) -> Run:
    """Return a run with a row's answers, and with the splits of the edition."""
    folder = workspace.split_path(edition, edition.held_out).parent.parent
    return Run(
        workspace=workspace,
        edition=edition,
        files=tuple(folder / "recorded" / name for name in files),
        search_table=folder / SEARCH if edition.target == "id" else None,
        offline=True,
    )


def untuned(run: Run, examples: Sequence[Example], recipe: Recipe) -> float:
    """Return the official score of a recipe by its own rule."""
    proposals = propose(run, recipe, [example.query for example in examples])
    return scored(recipe, proposals.sets, examples, run.edition)


def scored(recipe: Recipe, sets: Sequence[CandidateSet], examples: Sequence[Example], edition: Edition) -> float:
    """Return the official score of candidates by a recipe's own rule."""
    made = {prediction.query: prediction for prediction in recipe.select.select_all(sets)}
    return official(made, examples, edition).overall.f1


if __name__ == "__main__":
    with error_status():
        main()
