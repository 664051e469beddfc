"""Packaged models on each edition: each alone, all together, and in the default's stack.

    python eval/bench/models.py [--edition mini ...] [--rows NAME ...] [--models MODEL ...] [--limit N] [--store FILE]
        [--figures FILE]

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
import os
import resource
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

import figures

from lmkbc.cli.terminal import error_status
from lmkbc.generate.spec import merged
from lmkbc.models.packaged import GENERATIVE
from lmkbc.pipeline import propose
from lmkbc.recipe import RecipeFile, make_recipe
from lmkbc.run.base import Run
from lmkbc.run.options import Servers
from lmkbc.tune.nested import by_subject, fold_of
from lmkbc.tune.tune import official, tune
from lmkbc.types import CandidateSet, Example
from lmkbc.workspace import SYSTEMS, Workspace

Table = Mapping[str, Any]
HEADS = ("train only", "untuned", "out of fold", "lowest", "highest", "CPU-s", "MiB")
SEEDS = range(5)


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

    limit: for queries and train rows.
    """

    edition: str
    generate: tuple[Table, ...]
    stack: bool
    store: Path
    limit: int | None

    def measured(self) -> dict[str, str]:
        """Return the values of the row."""
        os.environ["HF_HUB_OFFLINE"] = "1"
        space, start = Workspace(), time.process_time()
        edition = space.edition(self.edition)
        train = space.examples(edition, "train")[: self.limit]
        held_out = space.examples(edition, edition.held_out)[: self.limit]
        shown = {}
        if self.stack:
            folds = fold_of(train, by_subject(train, 4, 0))
            kept = [row for row, fold in zip(train, folds, strict=True) if fold]
            rest = [row for row, fold in zip(train, folds, strict=True) if not fold]
            shown["train only"] = self.untuned(space, kept, rest)[0]
        shown["untuned"], sets = self.untuned(space, train, held_out)
        relations = {name: space.relation(name) for name in edition.relations}
        if not self.stack:
            draws = [tune(sets, held_out, edition, relations=relations, trials=0, seed=seed) for seed in SEEDS]
            scores = sorted(draw.cv_macro_f1 for draw in draws)
            shown |= {"out of fold": fmean(scores), "lowest": scores[0], "highest": scores[-1]}
        spent = {"CPU-s": time.process_time() - start, "MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}
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
        file = RecipeFile(description="", generate=self.generate, select={"rule": "expected-f1"})
        recipe = make_recipe("models", file, run.relations)
        sets = propose(run, recipe, [example.query for example in asked]).sets
        made = {one.query: one for one in recipe.select.select_all(sets)}
        return official(made, asked, edition).overall.f1, sets


def rows(models: Sequence[str]) -> Iterator[tuple[str, tuple[Table, ...], bool]]:
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
    tables: list[dict[str, Any]] = tomllib.loads((SYSTEMS / f"{recipe}.toml").read_text(encoding="utf-8"))["generate"]
    return tables


def _by(table: Table, model: str) -> Table:
    """Return a table with another model, and with source names for that model."""
    each = [{**one, "name": f"{one['name']}, {model}"} for one in table["each"]]
    return {**table, "model": model, "each": each}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edition", nargs="+", default=["mini"])
    parser.add_argument("--rows", nargs="+", help="names of rows (default: all)")
    small = [known.hub.rpartition("/")[2] for known in GENERATIVE if not known.requirements]
    parser.add_argument("--models", nargs="+", default=small, help="names of this machine's, or FILE.gguf")
    parser.add_argument("--limit", type=int, help="queries, and rows of train, the first ones, for a trial")
    parser.add_argument("--store", type=Path, help="where answers are kept (default: nowhere)")
    figures.option(parser)
    given = parser.parse_args(argv)
    for name in given.edition:
        print(f"{name:32}" + "".join(f"{head:>13}" for head in HEADS))
        values = {}
        with TemporaryDirectory() as folder:
            store = given.store or Path(folder) / "answers.sqlite"
            for label, generate, stack in rows(given.models):
                if given.rows and label not in given.rows:
                    continue
                values[label] = _apart(Row(name, generate, stack, store, given.limit))
                print(f"{label:32}" + "".join(f"{values[label].get(head, '-'):>13}" for head in HEADS), flush=True)
        figures.record(given.figures, f"models-{name}", values)


def _apart(row: Row) -> dict[str, str]:
    """Return the values of a row, measured in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(row.measured).result()


if __name__ == "__main__":
    with error_status():
        main()
