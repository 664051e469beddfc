"""Both sides of symmetric relations as evidence: F1 and recall at precision .90, with and without, out of fold.

    python eval/bench/constraints.py [--data DIR] [--folds N] [--seed N] [--figures FILE] [ROW ...]

A row is one symmetric relation of some answers. Its other sides are other queries of the split ("asked"), or rows of
train ("train"). "own" is the recipe's one rule, untuned. "tuned" is a rule tuned on other subjects by exact sweeps, out
of fold. "alone" reads a query by itself. "chosen" reads train's sides; in each fold, tuning decides whether it also
reads the asked sides. Recall is by confidences out of fold. Only the symmetric relations of an edition are tuned here,
so a figure may differ from that of a whole edition.

With --on-train, the rows are those of train, for systems that learn from it. Each row is scored by a fit without the
fold of its subject. So a recipe's setting is chosen without a held-out split.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import figures
from recorded import BERT, GPT3, GPT4, GPT35, RECODE, context_of, row_parser

from lmkbc.cli.terminal import error_status
from lmkbc.edition import Edition
from lmkbc.pipeline import propose
from lmkbc.recipe import read_recipe
from lmkbc.relation import Relation
from lmkbc.select.mutual import AskedSides, TrainSides, both_sides
from lmkbc.select.rule import PerRelation
from lmkbc.tune.tune import Tuned, official, tune
from lmkbc.types import CandidateSet, Example
from lmkbc.workspace import Workspace

ROWS = {
    "GPT-3.5": ("2023", "recorded", (GPT35,)),
    "GPT-4": ("2023", "recorded", (GPT4,)),
    "BERT": ("2023", "recorded", (BERT,)),
    "BERT with recode": ("2023", "recorded", (RECODE,)),
    "GPT-3": ("2022", "recorded", (GPT3,)),
    **{
        f"`{system}` {edition}": (edition, system, ())
        for system in ("embedded", "smollm2-embedded")
        for edition in ("2022", "2023", "2025", "2026")
    },
}
"""Answers -> edition, system, and files below recorded/."""
COLUMNS = (
    *("own", "own, asked", "own, train", "own, both"),
    *("tuned", "tuned, asked", "tuned, train", "tuned, chosen"),
    *("R@P90", "R@P90, train"),
)


def main(argv: Sequence[str] | None = None) -> None:
    parser = row_parser(__doc__, ROWS)
    parser.add_argument("--on-train", action="store_true", help="score train's rows, each without its own fold")
    given = parser.parse_args(argv)
    workspace = Workspace(data=given.data)
    values: dict[str, dict[str, str]] = {}
    print(f"{'answers, relation':45}  pairs  {'  '.join(COLUMNS)}")
    for name in given.rows or ROWS:
        edition_name, system, files = ROWS[name]
        if given.on_train and files:
            continue
        edition = workspace.edition(edition_name)
        context, recipe = context_of(workspace, edition, files), read_recipe(workspace, system)
        recipe = replace(recipe, pool=replace(recipe.pool, train_sides=False))
        symmetric = {one: relation for one, relation in context.relations.items() if relation.symmetric}
        split = "train" if given.on_train else edition.held_out
        examples = [x for x in workspace.examples(edition, split) if x.query.relation in symmetric]
        sets = propose(context, recipe, [example.query for example in examples]).sets
        settings = {"folds": given.folds, "seed": given.seed, "trials": 0}
        known = TrainSides({"train": context.train}, symmetric).read(sets)
        made = measured(recipe.select, sets, known, examples, edition, symmetric, settings)
        for relation, scores in made.items():
            pairs = asked_twice([one for one in examples if one.query.relation == relation])
            row = {column: f"{score:.3f}" for column, score in zip(COLUMNS, scores, strict=True)}
            values[f"{name}, {relation}"] = {"pairs": str(pairs)} | row
            print(f"{f'{name}, {relation}':45}  {pairs:5}  {'  '.join(row.values())}", flush=True)
    figures.record(given.figures, "constraints", values)


def measured(
    own: PerRelation,
    sets: Sequence[CandidateSet],
    known: Sequence[CandidateSet],
    examples: Sequence[Example],
    edition: Edition,
    relations: Mapping[str, Relation],
    settings: Mapping[str, Any],
) -> dict[str, tuple[float, ...]]:
    """Return the scores of each relation, in the order of the columns. known: the sets with train's sides."""
    one_sided = {name: replace(relation, symmetric=False) for name, relation in relations.items()}

    def untuned(read: Sequence[CandidateSet]) -> Mapping[str, Any]:
        return official({made.query: made for made in own.select_all(read)}, examples, edition).relations

    def tuned(read: Sequence[CandidateSet], described: Mapping[str, Relation]) -> Tuned:
        return tune(read, examples, edition, relations=described, both_sides=True, **settings)

    forms = sets, both_sides(sets, sets), known, both_sides(known, known)
    plain = [untuned(read) for read in forms]
    fitted = [*(tuned(read, one_sided) for read in forms[:3]), tuned(known, relations)]
    alone, _, train, _ = fitted
    return {
        name: (
            *(one[name].f1 for one in plain),
            *(one.relations[name].cv_f1 for one in fitted),
            *(one.confidences.relations[name].recall for one in (alone, train)),
        )
        for name in sorted(alone.relations)
    }


def asked_twice(examples: Sequence[Example]) -> int:
    """Return the number of gold objects with another side: they are subjects of the split too."""
    subjects = AskedSides([CandidateSet(example.query) for example in examples])
    keys = {query.subject_id or query.subject for query in subjects.sets}
    return sum(bool(keys & {gold.id or "", *gold.names}) for example in examples for gold in example.objects)


if __name__ == "__main__":
    with error_status():
        main()
