"""Objects that a run as for test reads from the other side of symmetric relations, with and without these statements.

For example, a run asks T, and only the held-out split states "X borders T". Rows are relations of the held-out split
that have another side. Each of five folds is answered by three fits. "Train" learns from train, and "both" from train
and from the other folds. "Without" learns from both, without what the other folds state about the subjects that are
asked. The first column counts the gold objects that only the other folds state, from the other side. The next ones
count those that are kept, and show F1 by the official scorer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from eval.bench import EDITIONS, parsed, parser_of
from eval.bench.embedded import Rows, as_test
from eval.bench.figures import Table
from lmkbc.recipe import read_recipe
from lmkbc.relation import Relation
from lmkbc.select.other_side import SubjectIndex
from lmkbc.session.run import Run
from lmkbc.session.statements import Statements
from lmkbc.tune.learn import official
from lmkbc.types import Candidate, CandidateSet, Example, GoldObject, Prediction, Query, grouped
from lmkbc.workspace import Workspace


def main(argv: Sequence[str]) -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--editions", nargs="+", default=EDITIONS)
    parser.add_argument("--system", default="embedded", help="a bundled system that learns from labelled rows")
    given = parsed(parser, argv, editions=["mini"], system="naive-bayes")
    workspace, table = Workspace(data=given.data), Table("sides", "edition, relation")
    recipe = read_recipe(workspace, given.system)
    for name in given.editions:
        edition = workspace.edition(name)
        run = Run(workspace=workspace, edition=edition, offline=True)
        sided = {relation for relation, about in run.relations.items() if about.other_side()}
        examples = workspace.examples(edition, edition.held_out)
        learned: dict[str, Rows] = {
            "train": lambda *_: (),
            "both": lambda rows, _: rows,
            "without": lambda rows, asked: [*unsaid(rows, asked, run.relations)],  # noqa: B023 -- called in the loop
        }
        answered = {what: as_test(run, examples, recipe, rows) for what, rows in learned.items()}
        made = {what: recipe.select.select_all([one.candidates for one in own]) for what, own in answered.items()}
        statements = [one.statements for one in answered["both"]]
        for relation in sorted(sided & {example.query.relation for example in examples}):
            places = [place for place, example in enumerate(examples) if example.query.relation == relation]
            such = sum(only(edition.held_out, examples[place], statements[place]) for place in places)
            kept = {
                f"kept, {what}": sum(stated(edition.held_out, own[place], statements[place]) for place in places)
                for what, own in made.items()
            }
            f1 = {
                f"F1, {what}": official({one.query: one for one in own}, examples, edition).relations[relation].f1
                for what, own in made.items()
            }
            counts = {what: str(count) for what, count in {"such objects": such, **kept}.items()}
            table.add(f"{name}, {relation}", counts | {what: f"{score:.3f}" for what, score in f1.items()})


def unsaid(rows: Sequence[Example], asked: Sequence[Query], relations: Mapping[str, Relation]) -> Sequence[Example]:
    """Return rows without objects that are asked by the other side; a row that loses all its objects is left out."""
    by_relation = grouped((query.relation, CandidateSet(query)) for query in asked)
    subjects = {name: SubjectIndex(sets) for name, sets in by_relation.items()}
    made = list[Example]()
    spelled = {relation.name: name for name, relation in relations.items()}
    for row in rows:
        others = subjects.get(spelled.get(relations[row.query.relation].other_side(), ""))

        def is_asked(gold: GoldObject) -> bool:
            names = gold.names or ("",)
            return bool(others and any(others.find(Candidate(name, id=gold.id)) for name in names))  # noqa: B023

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
