"""Both sides of symmetric relations as evidence: F1 and recall at precision .90, with and without, out of fold.

    python eval/bench/constraints.py [--data DIR] [--folds N] [--seed N] [--figures FILE] [ROW ...]

A row is one symmetric relation of some answers. "own rule" is the recipe's one rule, untuned; "out of fold" is a rule
tuned on other subjects by exact sweeps. "alone" reads a query by itself. "both" always takes the mean of both sides.
"chosen" leaves that choice to tuning, in each fold anew. Recall is by confidences out of fold. Only the symmetric
relations of an edition are tuned here, so that a figure may differ from that of a whole edition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import figures
from recorded import BERT, GPT4, GPT35, RECODE, context_of, row_parser

from lmkbc.cli.terminal import error_status
from lmkbc.edition import Edition
from lmkbc.pipeline import propose
from lmkbc.recipe import read_recipe
from lmkbc.relation import Relation
from lmkbc.select.mutual import AskedSides, both_sides
from lmkbc.select.rule import PerRelation
from lmkbc.tune.tune import Tuned, official, tune
from lmkbc.types import CandidateSet, Example
from lmkbc.workspace import Workspace

ROWS = {
    "GPT-3.5": ("2023", "recorded", (GPT35,)),
    "GPT-4": ("2023", "recorded", (GPT4,)),
    "BERT": ("2023", "recorded", (BERT,)),
    "BERT with recode": ("2023", "recorded", (RECODE,)),
    "`embedded` 2023": ("2023", "embedded", ()),
    "`embedded` 2025": ("2025", "embedded", ()),
}
"""Answers -> edition, system, and files below recorded/."""
COLUMNS = ("own rule", "own rule, both", "alone", "both", "chosen", "R@P90 alone", "R@P90 both")


def main(argv: Sequence[str] | None = None) -> None:
    parser = row_parser(__doc__, ROWS)
    given = parser.parse_args(argv)
    workspace = Workspace(data=given.data)
    values: dict[str, dict[str, str]] = {}
    print(f"{'answers, relation':45}  pairs  {'  '.join(COLUMNS)}")
    for name in given.rows or ROWS:
        edition_name, system, files = ROWS[name]
        edition = workspace.edition(edition_name)
        context, recipe = context_of(workspace, edition, files), read_recipe(workspace, system)
        symmetric = {one: relation for one, relation in context.relations.items() if relation.symmetric}
        examples = [x for x in workspace.examples(edition, edition.held_out) if x.query.relation in symmetric]
        sets = propose(context, recipe, [example.query for example in examples]).sets
        settings = {"folds": given.folds, "seed": given.seed, "trials": 0}
        made = measured(recipe.select, sets, examples, edition, symmetric, settings)
        for relation, scores in made.items():
            pairs = asked_twice([one for one in examples if one.query.relation == relation])
            row = {column: f"{score:.3f}" for column, score in zip(COLUMNS, scores, strict=True)}
            values[f"{name}, {relation}"] = {"pairs": str(pairs)} | row
            print(f"{f'{name}, {relation}':45}  {pairs:5}  {'  '.join(row.values())}", flush=True)
    figures.record(given.figures, "constraints", values)


def measured(
    own: PerRelation,
    sets: Sequence[CandidateSet],
    examples: Sequence[Example],
    edition: Edition,
    relations: Mapping[str, Relation],
    settings: Mapping[str, Any],
) -> dict[str, tuple[float, ...]]:
    """Return the scores of each relation, in the order of the columns."""
    both = both_sides(sets, sets)
    one_sided = {name: replace(relation, symmetric=False) for name, relation in relations.items()}

    def untuned(read: Sequence[CandidateSet]) -> Mapping[str, Any]:
        return official({made.query: made for made in own.select_all(read)}, examples, edition).relations

    def tuned(read: Sequence[CandidateSet], known: Mapping[str, Relation]) -> Tuned:
        return tune(read, examples, edition, relations=known, both_sides=True, **settings)

    alone, always, chosen = tuned(sets, one_sided), tuned(both, one_sided), tuned(sets, relations)
    before, after = untuned(sets), untuned(both)
    return {
        name: (
            before[name].f1,
            after[name].f1,
            *(one.relations[name].cv_f1 for one in (alone, always, chosen)),
            *(one.confidences.relations[name].recall for one in (alone, always)),
        )
        for name in sorted(alone.relations)
    }


def asked_twice(examples: Sequence[Example]) -> int:
    """Return how many gold objects are subjects of the split too, so that there is another side."""
    subjects = AskedSides([CandidateSet(example.query) for example in examples])
    keys = {query.subject_id or query.subject for query in subjects.sets}
    return sum(bool(keys & {gold.id or "", *gold.names}) for example in examples for gold in example.objects)


if __name__ == "__main__":
    with error_status():
        main()
