"""What a run as for test reads from the other side of symmetric relations, with and without these statements.

    python eval/bench/sides.py [--data DIR] [--editions 2022 2023 ...] [--system NAME] [--figures FILE]

For example, a run asks T, and only the held-out split states "X borders T". Rows are relations of the held-out split
that have another side. Each of five folds is answered by three fits. "Train" learns from train, and "both" from train
and from the other folds. "Without" learns from both, without what the other folds state about the subjects that are
asked. The first column counts the gold objects that only the other folds state, from the other side. The next ones
count those that are kept, and show F1 by the official scorer.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import figures
from embedded import Answered, as_test

from lmkbc.cli.terminal import error_status
from lmkbc.recipe import read_recipe
from lmkbc.relation import Relation
from lmkbc.run.base import Run
from lmkbc.select.mutual import AskedSides
from lmkbc.statements import Statements
from lmkbc.tune.tune import official
from lmkbc.types import Candidate, CandidateSet, Example, GoldObject, Prediction, Query
from lmkbc.workspace import Workspace


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="directory of the official splits (default: $LMKBC_DATA)")
    parser.add_argument("--editions", nargs="+", default=["2022", "2023", "2024", "2025", "2026"])
    parser.add_argument("--system", default="embedded", help="a bundled system that learns from labelled rows")
    figures.option(parser)
    given = parser.parse_args(argv)
    workspace = Workspace(data=given.data)
    recipe = read_recipe(workspace, given.system)
    values: dict[str, dict[str, str]] = {}
    for name in given.editions:
        edition = workspace.edition(name)
        run = Run(workspace=workspace, edition=edition, offline=True)
        sided = {relation for relation, about in run.relations.items() if about.other_side()}
        examples = workspace.examples(edition, edition.held_out)

        def kept(learned: Callable[..., Sequence[Example]]) -> tuple[list[Prediction], list[Answered]]:
            answered = as_test(run, examples, recipe, learned)  # noqa: B023 -- it is called within the loop
            return recipe.select.select_all([one.candidates for one in answered]), answered

        both, answered = kept(lambda rows, _: rows)
        statements = [one.statements for one in answered]
        alone, _ = kept(lambda *_: ())
        without, _ = kept(lambda rows, asked: [*unsaid(rows, asked, run.relations)])  # noqa: B023
        for relation in sorted(sided & {example.query.relation for example in examples}):
            row = values[f"{name}, {relation}"] = {
                "such objects": str(
                    sum(
                        only(edition.held_out, example, own)
                        for example, own in zip(examples, statements, strict=True)
                        if example.query.relation == relation
                    )
                ),
            }
            for what, made in (("train", alone), ("both", both), ("without", without)):
                own = [one for one in zip(made, statements, strict=True) if one[0].query.relation == relation]
                row[f"kept, {what}"] = str(sum(stated(edition.held_out, *one) for one in own))
            for what, made in (("train", alone), ("both", both), ("without", without)):
                score = official({one.query: one for one in made}, examples, edition).relations[relation].f1
                row[f"F1, {what}"] = f"{score:.3f}"
            print(f"{name}, {relation}: {', '.join(f'{what} {value}' for what, value in row.items())}", flush=True)
    figures.record(given.figures, "sides", values)


def unsaid(rows: Sequence[Example], asked: Sequence[Query], relations: Mapping[str, Relation]) -> Sequence[Example]:
    """Return rows without objects that are asked by the other side; a row that loses all its objects is left out."""
    subjects, made = AskedSides([CandidateSet(query) for query in asked]), list[Example]()
    spelled = {relation.name: name for name, relation in relations.items()}
    for row in rows:
        other = spelled.get(relations[row.query.relation].other_side(), "")

        def is_asked(gold: GoldObject) -> bool:
            names = gold.names or ("",)
            return any(subjects.find(other, Candidate(name, id=gold.id)) for name in names)  # noqa: B023

        left = tuple(gold for gold in row.objects if not is_asked(gold))
        if left or not row.objects:
            made.append(replace(row, objects=left))
    return made


def only(split: str, example: Example, statements: Statements) -> int:
    """Return how many gold objects of an example only that split states from the other side."""
    named = ([Candidate(name, id=gold.id) for name in gold.names or ("",)] for gold in example.objects)
    return sum(any(_only(split, example.query, one, statements) for one in names) for names in named)


def stated(split: str, made: Prediction, statements: Statements) -> int:
    """Return how many kept objects only that split states from the other side."""
    return sum(_only(split, made.query, one, statements) for one in made.objects)


def _only(split: str, query: Query, candidate: Candidate, statements: Statements) -> bool:
    return statements.from_other_side(query, candidate) == (split,)


if __name__ == "__main__":
    with error_status():
        main()
