"""Scores of the embedded default on each edition's labelled held-out split, beside its baselines.

    python eval/bench/embedded.py [--data DIR] [--editions 2022 2023 ...] [--no-encoder] [--system NAME] [--as-test]
        [--figures FILE]

It is fitted on train only. All three columns use the edition's official scorer and their recipe's own rule.
--system: another bundled system in place of the embedded default. --as-test: out of fold, fitted on train and on the
held-out split's other folds, as a run of the test split is fitted on train and on the held-out split.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import figures
from recorded import scored, untuned

from lmkbc.cli.terminal import error_status
from lmkbc.generate.embedded.spec import Embedded
from lmkbc.pipeline import propose
from lmkbc.recipe import Recipe, read_recipe
from lmkbc.run.base import Run
from lmkbc.tune.defaults import FOLDS
from lmkbc.tune.nested import by_subject, fold_of
from lmkbc.types import CandidateSet, Example
from lmkbc.workspace import Workspace

BASELINES = {"class prior": "prior", "all-empty file": "bl22-empty"}
"""Column -> system."""


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="directory of the official splits (default: $LMKBC_DATA)")
    parser.add_argument("--editions", nargs="+", default=["2022", "2023", "2024", "2025", "2026"])
    parser.add_argument("--no-encoder", action="store_true", help="strings only, as on a machine without the encoder")
    parser.add_argument("--as-test", action="store_true", help="learn from the other folds of the split too")
    parser.add_argument("--system", default="embedded", help="a bundled system in place of the embedded default")
    figures.option(parser)
    given = parser.parse_args(argv)
    workspace = Workspace(data=given.data)
    recipe = read_recipe(workspace, given.system)
    recipe = _without_encoder(recipe) if given.no_encoder else recipe
    column = "without the sentence encoder" if given.no_encoder else given.system
    column, measured = (f"{column}, as for test", as_test) if given.as_test else (column, untuned)
    values: dict[str, dict[str, str]] = {}
    print("edition split  default   prior   empty  seconds")
    for name in given.editions:
        edition = workspace.edition(name)
        examples = workspace.examples(edition, edition.held_out)
        run = Run(workspace=workspace, edition=edition, offline=True)
        start = time.monotonic()
        scores = {column: measured(run, examples, recipe)}
        seconds = time.monotonic() - start
        for baseline, system in BASELINES.items():
            scores[baseline] = untuned(run, examples, read_recipe(workspace, system))
        values[name] = {shown: f"{score:.3f}" for shown, score in scores.items()}
        default, prior, empty = scores.values()
        print(f"{name}    {edition.held_out:5} {default:8.4f} {prior:7.4f} {empty:7.4f} {seconds:8.1f}", flush=True)
    table = "embedded-no-encoder" if given.no_encoder else given.system
    figures.record(given.figures, f"{table}-as-test" if given.as_test else table, values)


@dataclass(frozen=True, kw_only=True)
class RunWithMore(Run):
    """A run that learns from further labelled rows."""

    rows: tuple[Example, ...]

    @cached_property
    def labelled(self) -> list[Example]:
        """Return train and the further rows."""
        return [*self.train, *self.rows]


def as_test(run: Run, examples: Sequence[Example], recipe: Recipe) -> float:
    """Return official F1 out of fold of a recipe that learns from train and from the other folds of the examples."""
    fold = fold_of(examples, by_subject(examples, FOLDS, 0))
    made = dict[int, CandidateSet]()
    for number in range(FOLDS):
        rows = tuple(example for example, own in zip(examples, fold, strict=True) if own != number)
        asked = [place for place, own in enumerate(fold) if own == number]
        more = RunWithMore(workspace=run.workspace, edition=run.edition, rows=rows, offline=True)
        proposals = propose(more, recipe, [examples[place].query for place in asked])
        made.update(zip(asked, proposals.sets, strict=True))
    return scored(recipe, [made[place] for place in range(len(examples))], examples, run.edition)


def _without_encoder(recipe: Recipe) -> Recipe:
    """Return a recipe whose embedded generators use strings only."""
    generate = (replace(spec, encoder=False) if isinstance(spec, Embedded) else spec for spec in recipe.generate)
    return replace(recipe, generate=tuple(generate))


if __name__ == "__main__":
    with error_status():
        main()
