"""Scores of recorded answers of real models: reported by their authors, and here, untuned and tuned out of fold.

Each row shows official macro-F1. First is the figure that the answers' authors report. Then "untuned": parsing,
cleaning and linking with the recipe's one rule. Then rules tuned per relation: out of fold, and in sample. The gain of
tuning is "out of fold" less "untuned". Then, on the same split, the class prior and an empty file. Queries that no
model answered count as wrong. Last are the seconds of proposing and of tuning.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from eval.bench import few_of, parsed, parser_of, timed
from eval.bench.figures import Table
from lmkbc.edition import Edition
from lmkbc.plan import Plan
from lmkbc.recipe import Recipe, read_recipe
from lmkbc.relation import Relation
from lmkbc.run.pipeline import propose
from lmkbc.select.selector import PerRelation
from lmkbc.session.run import Run
from lmkbc.tune.learn import Tuned, official, tune
from lmkbc.tune.outcomes import PLAIN
from lmkbc.tune.tuning_set import FOLDS, SEED, TRIALS, TuningOptions, TuningSet
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


def row_parser(about: str | None, *rows: str, figures: bool = False) -> argparse.ArgumentParser:
    """Return a parser with the options of benchmarks of recorded answers: rows, folds, seed."""
    parser = parser_of(about, *rows, figures=figures)
    parser.add_argument("--folds", type=int, default=FOLDS)
    parser.add_argument("--seed", type=int, default=SEED)
    return parser


def main(argv: Sequence[str]) -> None:
    parser = row_parser(__doc__, *ROWS, figures=True)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--limit", type=int, help="queries of a split, about so many, evenly spaced")
    given = parsed(parser, argv, rows=["Qwen"], trials=0, folds=2, limit=40)
    workspace, table = Workspace(data=given.data), Table("recorded", "recorded answers", given.figures)
    for row in map(ROWS.__getitem__, given.rows):
        edition, examples, run, recipe = opened(workspace, row, given.limit)
        plain = Run(workspace=workspace, edition=edition)
        prior, empty = (untuned(plain, examples, read_recipe(workspace, name)) for name in ("prior", "bl22-empty"))
        sets, _, proposing = timed(proposed, run, recipe, examples)
        how = TuningOptions(folds=given.folds, trials=given.trials, seed=given.seed)
        tuned, _, tuning = timed(tuned_rules, sets, examples, edition, run.relations, how, recipe.select)
        scores = {
            "untuned": scored(recipe, sets, examples, edition),
            "out of fold": tuned.cv_macro_f1,
            "in sample": tuned.insample_macro_f1,
        }
        cells = {"their authors": "-" if row.authors is None else f"{row.authors:.3f}"}
        table.add(
            row.label,
            cells | {name: f"{score:.3f}" for name, score in scores.items()},
            prior=f"{prior:.3f}",
            empty=f"{empty:.3f}",
            failed=tuned.failed,
            propose_s=f"{proposing:.1f}",
            tune_s=f"{tuning:.0f}",
        )


def opened(workspace: Workspace, row: Row, limit: int | None) -> tuple[Edition, list[Example], Run, Recipe]:
    """Return a row's edition, its labelled queries (about `limit`, or all), its run and its recipe."""
    edition = workspace.edition(row.edition)
    examples = few_of(workspace.examples(edition, edition.held_out), limit)
    return edition, examples, context_of(workspace, edition, row.files), read_recipe(workspace, row.system)


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


def proposed(run: Run, recipe: Recipe, examples: Sequence[Example]) -> Sequence[CandidateSet]:
    """Return a recipe's candidates for the queries of examples."""
    return propose(Plan.of(run, recipe), [example.query for example in examples]).sets


def tuned_rules(
    sets: Sequence[CandidateSet],
    examples: Sequence[Example],
    edition: Edition,
    relations: Mapping[str, Relation],
    how: TuningOptions,
    selector: PerRelation = PLAIN,
) -> Tuned:
    """Return rules tuned for candidates. selector: of the recipe's own rules; by default, these keep everything."""
    return tune(TuningSet(sets, examples, edition, relations, selector, how))


def untuned(run: Run, examples: Sequence[Example], recipe: Recipe) -> float:
    """Return the official score of a recipe by its own rule."""
    return scored(recipe, proposed(run, recipe, examples), examples, run.edition)


def scored(recipe: Recipe, sets: Sequence[CandidateSet], examples: Sequence[Example], edition: Edition) -> float:
    """Return the official score of candidates by a recipe's own rule."""
    made = {prediction.query: prediction for prediction in recipe.select.select_all(sets)}
    return official(made, examples, edition).overall.f1
