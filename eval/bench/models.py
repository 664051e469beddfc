"""Packaged models on each edition: each alone, all together, and in the default's stack.

Alone, a model gives the likelihood of each train object as a continuation, as in `smollm2`. F1 on the labelled held-out
split is shown untuned, and with rules tuned out of fold. The tuned F1 is the mean over five draws of the folds, with
the lowest and the highest. It varies between draws on a small split.

In the stack, a model replaces the default's. With several, only the first one's hidden states are used. "train only" is
computed before the held-out split: fit on three quarters of train, and score the rest. Use it for choices. Each row has
a process of its own, with CPU-seconds and peak memory. Answers are stored in --store. A row reads answers that other
rows asked for, and its CPU-seconds are only those that it adds.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

from eval.bench import few_of, model_of, parsed, parser_of, peak_mb
from eval.bench.figures import Table
from eval.bench.recorded import proposed, scored, tuned_rules
from lmkbc.components import SYSTEMS
from lmkbc.files.reader import read_toml
from lmkbc.generate.spec import merged
from lmkbc.models.located import GENERATIVE
from lmkbc.recipe import RecipeFile, make_recipe
from lmkbc.select.expected_f1 import ExpectedF1
from lmkbc.select.selector import PerRelation
from lmkbc.session.options import Servers
from lmkbc.session.run import Run
from lmkbc.tune.choice import by_subject, fold_of
from lmkbc.tune.tuning_set import TuningOptions
from lmkbc.types import CandidateSet, Example
from lmkbc.workspace import Workspace

Generator = Mapping[str, Any]
OWN = PerRelation(ExpectedF1())
"""The recipes' own rule."""


@dataclass(frozen=True, kw_only=True)
class PartRun(Run):
    """A run with only a part of the train split."""

    rows: tuple[Example, ...]

    @cached_property
    def train(self) -> list[Example]:
        """Return the part."""
        return list(self.rows)


@dataclass(frozen=True)
class Row:
    """Work of one process. stack: whether it is the default's stack, fitted on train.

    given: the command's options.
    """

    edition: str
    generate: tuple[Generator, ...]
    stack: bool
    store: Path
    given: argparse.Namespace

    def measured(self) -> dict[str, str]:
        """Return the values of the row."""
        space, start = Workspace(data=self.given.data), time.process_time()
        edition = space.edition(self.edition)
        train = few_of(space.examples(edition, "train"), self.given.limit)
        held_out = few_of(space.examples(edition, edition.held_out), self.given.limit)
        shown = {}
        if self.stack:
            folds = fold_of(train, by_subject(train, 4, 0))
            kept = [row for row, fold in zip(train, folds, strict=True) if fold]
            rest = [row for row, fold in zip(train, folds, strict=True) if not fold]
            shown["train only"] = self.untuned(space, kept, rest)[0]
        shown["untuned"], sets = self.untuned(space, train, held_out)
        relations = {name: space.relation(name) for name in edition.relations}
        if not self.stack:
            draws = [
                tuned_rules(sets, held_out, edition, relations, TuningOptions(trials=0, seed=seed), OWN)
                for seed in range(self.given.draws)
            ]
            scores = sorted(draw.cv_macro_f1 for draw in draws)
            shown |= {"out of fold": fmean(scores), "lowest": scores[0], "highest": scores[-1]}
        spent = {"CPU-s": time.process_time() - start, "MB": peak_mb()}
        return {name: f"{f1:.3f}".lstrip("0") for name, f1 in shown.items()} | {
            name: f"{value:,.0f}" for name, value in spent.items()
        }

    def untuned(
        self, space: Workspace, train: Sequence[Example], asked: Sequence[Example]
    ) -> tuple[float, Sequence[CandidateSet]]:
        """Return the F1 of the recipe's own rule, and the candidate sets. train: the only labelled rows of the run."""
        servers = Servers(store=self.store)
        edition = space.edition(self.edition)
        run = PartRun(workspace=space, edition=edition, rows=tuple(train), offline=True, servers=servers)
        file = RecipeFile(description="", generate=self.generate, select=OWN.general.to_table())
        recipe = make_recipe("models", file, run.relations)
        sets = proposed(run, recipe, asked)
        return scored(recipe, sets, asked, edition), sets


def rows(models: Sequence[str]) -> Iterator[tuple[str, tuple[Generator, ...], bool]]:
    """Yield each row's name, its generators, and whether it is a stack."""
    (alone,), (stack,) = (_tables(name) for name in ("smollm2", "smollm2-embedded"))
    for model in models:
        yield model, (_by(alone, model),), False
    together = "both" if len(models) == 2 else "all" if len(models) > 1 else ""
    if together:
        yield together, tuple(_by(alone, model) for model in models), False
    (features,) = stack["features"]
    for model in models:
        states = merged(stack["hidden_states"], {"model": model})
        yield f"stack of {model}", ({**stack, "hidden_states": states, "features": [_by(features, model)]},), True
    if together:
        yield f"stack of {together}", ({**stack, "features": [_by(features, model) for model in models]},), True


def _tables(recipe: str) -> Sequence[dict[str, Any]]:
    tables: list[dict[str, Any]] = read_toml(SYSTEMS / recipe / "recipe.toml")["generate"]
    return tables


def _by(table: Generator, model: str) -> Generator:
    """Return a table with another model, and with source names for that model."""
    each = [{**one, "name": f"{one['name']}, {model}"} for one in table["each"]]
    return {**table, "model": model, "each": each}


def main(argv: Sequence[str]) -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--edition", nargs="+", default=["mini"])
    parser.add_argument("--rows", nargs="+", help="names of rows (default: all)")
    packaged = [known.hub.rpartition("/")[2] for known in GENERATIVE if not known.requirements]
    parser.add_argument("--models", nargs="+", default=packaged, help="names of this machine's, or FILE.gguf")
    parser.add_argument("--limit", type=int, help="queries, and rows of train, about so many, evenly spaced")
    parser.add_argument("--draws", type=int, default=5, help="of the folds")
    parser.add_argument("--store", type=Path, help="where answers are kept (default: nowhere)")
    given = parsed(parser, argv, limit=40, draws=1, model="")
    with TemporaryDirectory() as folder, model_of(given) if given.small else nullcontext() as tiny:
        store = given.store or Path(folder) / "answers.sqlite"
        for name in given.edition:
            table = Table(f"models-{name}", name)
            for label, generate, stack in rows([tiny] if tiny else given.models):
                if tiny is None and label in (given.rows or [label]):
                    table.add(label, _apart(Row(name, generate, stack, store, given)))
                elif label == tiny:
                    table.add("a tiny model", Row(name, generate, stack, store, given).measured())


def _apart(row: Row) -> dict[str, str]:
    """Return the values of a row, measured in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(row.measured).result()
