"""Scores of the embedded default on each edition's labelled held-out split, beside its baselines.

It is fitted on train only. All columns use the edition's official scorer and their recipe's own rule. --system: another
bundled system in place of the embedded default. --as-test: out of fold, fitted on train and on the held-out split's
other folds, as a run of the test split is fitted on train and on the held-out split. The score stands beside that
without the objects that these rows state from the other side ("X borders T", where T is asked), and their number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from eval.bench import EDITIONS, parsed, parser_of, timed
from eval.bench.figures import Table
from eval.bench.recorded import proposed, untuned
from lmkbc.generate.embedded.embedded import Embedded
from lmkbc.recipe import Recipe, read_recipe
from lmkbc.session.run import Run
from lmkbc.session.statements import Statements
from lmkbc.tune.choice import by_subject, fold_of
from lmkbc.tune.learn import official
from lmkbc.tune.tuning_set import FOLDS
from lmkbc.types import CandidateSet, Example, Query
from lmkbc.workspace import Workspace

BASELINES = {"class prior": "prior", "all-empty file": "bl22-empty"}
"""Column -> system."""


def main(argv: Sequence[str]) -> None:
    parser = parser_of(__doc__, figures=True)
    parser.add_argument("--editions", nargs="+", default=EDITIONS)
    parser.add_argument("--no-encoder", action="store_true", help="strings only, as on a machine without the encoder")
    parser.add_argument("--as-test", action="store_true", help="learn from the other folds of the split too")
    parser.add_argument("--system", default="embedded", help="a bundled system in place of the embedded default")
    given = parsed(parser, argv, editions=["mini"], system="naive-bayes", as_test=True)
    workspace = Workspace(data=given.data)
    recipe = read_recipe(workspace, given.system)
    recipe = _without_encoder(recipe) if given.no_encoder else recipe
    column = "without the sentence encoder" if given.no_encoder else given.system
    kept = f"{given.system}-no-encoder" if given.no_encoder else given.system
    table = Table(f"{kept}-as-test" if given.as_test else kept, "edition", given.figures)
    for name in given.editions:
        run = Run(workspace=workspace, edition=workspace.edition(name), offline=True)
        examples = workspace.examples(run.edition, run.edition.held_out)
        if given.as_test:
            cells, _, seconds = timed(with_and_without, run, examples, recipe, f"{column}, as for test")
        else:
            f1, _, seconds = timed(untuned, run, examples, recipe)
            floors = {what: untuned(run, examples, read_recipe(workspace, one)) for what, one in BASELINES.items()}
            cells = {what: f"{score:.3f}" for what, score in {column: f1, **floors}.items()}
        table.add(name, cells, seconds=f"{seconds:.1f}")


@dataclass(frozen=True, kw_only=True)
class RunWithMore(Run):
    """A run that learns from train and from further labelled rows of the held-out split."""

    rows: tuple[Example, ...]

    @cached_property
    def labelled_rows(self) -> dict[str, list[Example]]:
        """Return the rows by split, as `Run` does for test."""
        return {"train": self.train} | ({} if self.learn_from else {self.edition.held_out: [*self.rows]})


Rows = Callable[[Sequence[Example], Sequence[Query]], Sequence[Example]]
"""Function from the rows of the other folds, and the queries that are asked, to the rows that are learned from."""


class Answered(NamedTuple):
    """A query's candidates, and what the rows of train and of the other folds state."""

    candidates: CandidateSet
    statements: Statements


def as_test(
    run: Run, examples: Sequence[Example], recipe: Recipe, learned: Rows = lambda rows, _: rows
) -> list[Answered]:
    """Return the answers out of fold of a recipe that learns from train and from the other folds of the examples."""
    fold = fold_of(examples, by_subject(examples, FOLDS, 0))
    made = dict[int, Answered]()
    for number in range(FOLDS):
        rows = tuple(example for example, own in zip(examples, fold, strict=True) if own != number)
        asked = {place: examples[place].query for place, own in enumerate(fold) if own == number}
        more = replace(run_with(run, rows), rows=tuple(learned(rows, [*asked.values()])))
        sets = proposed(more, recipe, [examples[place] for place in asked])
        statements = run_with(run, rows).statements
        made.update((place, Answered(found, statements)) for place, found in zip(asked, sets, strict=True))
    return [made[place] for place in range(len(examples))]


def run_with(run: Run, rows: tuple[Example, ...]) -> RunWithMore:
    """Return a run that learns from further rows too."""
    return RunWithMore(workspace=run.workspace, edition=run.edition, rows=rows, offline=True)


def with_and_without(run: Run, examples: Sequence[Example], recipe: Recipe, column: str) -> dict[str, str]:
    """Return F1 as for test, F1 without the objects that labelled rows state from the other side, and their number."""
    answered = as_test(run, examples, recipe)
    kept = recipe.select.select_all([one.candidates for one in answered])
    stated = [
        {found for found in made.objects if one.statements.from_other_side(made.query, found)}
        for made, one in zip(kept, answered, strict=True)
    ]
    left = [
        replace(made, objects=tuple(found for found in made.objects if found not in own))
        for made, own in zip(kept, stated, strict=True)
    ]
    whole, without = (
        official({one.query: one for one in made}, examples, run.edition).overall.f1 for made in (kept, left)
    )
    count, total = sum(map(len, stated)), sum(len(made.objects) for made in kept)
    return {
        column: f"{whole:.3f}",
        f"{column}, without the other side": f"{without:.3f}",
        f"{column}, from the other side": f"{count} of {total}",
    }


def _without_encoder(recipe: Recipe) -> Recipe:
    """Return a recipe whose embedded generators use strings only."""
    generate = (replace(spec, evidence=("train",)) if isinstance(spec, Embedded) else spec for spec in recipe.generate)
    return replace(recipe, generate=tuple(generate))
