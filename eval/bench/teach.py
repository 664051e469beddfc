"""Effect of taught facts on a small language model: closed lists by likelihood, before, after, and in a control.

    python eval/bench/teach.py [--edition 2023] [--facts 100] [--per-relation 20] [--models DIR] [--only base taught]
        [--figures FILE]

Training is that of `lmkbc train lora --facts N --system smollm2-embedded`. It uses the train split's facts, and at most
N of KAMEL and silver per relation. Subjects of val and test splits are left out. The prompts are those of the closed
list. The control is the same training on random weights, which shows the effect of the facts alone.

Relations are those whose closed list covers at least half of the train objects. F1 is out of fold over the first
held-out rows of each relation, with rules tuned on the other folds. It is shown for log-probabilities as they are, and
less those of other subjects. A killed training can be resumed with --models, and scores are stored in --store.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import mean
from typing import Literal

import figures
import torch

from lmkbc.cli.terminal import error_status, progress
from lmkbc.edition import Edition
from lmkbc.files.places import cache_dir, data_dirs
from lmkbc.generate.language_model import LanguageModelSpec
from lmkbc.generate.prior import ClosedSet
from lmkbc.generate.ranking import CandidateRanking
from lmkbc.pipeline import propose
from lmkbc.probe.benchmark import half_width
from lmkbc.probe.controls import with_random_weights
from lmkbc.recipe import Recipe, read_recipe
from lmkbc.run.base import Run
from lmkbc.run.options import Servers
from lmkbc.train.corpus import Corpus, gather
from lmkbc.train.lora import train
from lmkbc.train.settings import Lora
from lmkbc.tune.tune import official, tune
from lmkbc.types import Example
from lmkbc.workspace import Workspace

SYSTEM, MODEL = "smollm2-embedded", "SmolLM2-135M-Instruct"
ROWS = ("base", "taught", "control")
POOLED = "embedded"
COLUMNS = {
    "as they are": "log-probabilities as they are",
    "less others": "less those of other subjects",
    "pooled": "pooled with the embedded default",
}
"""Printed column -> its name in documents."""
COVERED = 0.5


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edition", default="2023")
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--facts", type=int, default=100, help="KAMEL and silver facts of one relation")
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--rate", type=float, default=2e-4)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch", type=int, default=2, help="prompts of a step, each of nine facts")
    parser.add_argument("--per-relation", type=int, default=20, help="rows of each relation, the first ones")
    parser.add_argument("--only", nargs="+", default=ROWS, choices=ROWS)
    parser.add_argument("--data", type=Path, help="directory of the official splits (default: $LMKBC_DATA)")
    parser.add_argument("--models", type=Path, help="directory that keeps the adapters (default: they are not kept)")
    parser.add_argument("--store", type=Path, default=cache_dir() / "teach.sqlite", help="where scores are kept")
    figures.option(parser)
    given = parser.parse_args(argv)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    how = Lora(
        rank=given.rank,
        dropout=0.0,
        rate=given.rate,
        epochs=given.epochs,
        batch=given.batch,
        facts=given.facts,
        every=20,
    )
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench.of(given, given.models or Path(folder), how)
        print(f"{given.edition}, {len(bench.examples)} rows of {', '.join(bench.relations)}", flush=True)
        print(f"{'source':10}" + "".join(f"{name:>17}" for name in COLUMNS) + f"{'CPU-seconds':>13}")
        bench.floor()
        for name in given.only:
            bench.row(name)
        bench.differences()
        figures.record(given.figures, "teach", bench.values)


@dataclass(frozen=True)
class Bench:
    """The rows that every model is asked, and the settings of its training."""

    run: Run
    relations: Sequence[str]
    examples: Sequence[Example]
    places: Sequence[Path]
    models: Path
    how: Lora
    found: dict[str, list[list[float]]] = field(default_factory=dict)
    """Row -> for each relation, the F1 of each query with log-probabilities as they are."""
    values: dict[str, dict[str, str]] = field(default_factory=dict)
    """Row -> column -> value in documents."""

    @classmethod
    def of(cls, given: argparse.Namespace, models: Path, how: Lora) -> Bench:
        """Return a benchmark of the first held-out rows of each relation with a closed list."""
        workspace = Workspace(data=given.data)
        edition = workspace.edition(given.edition)
        run = Run(
            workspace=workspace,
            edition=edition,
            model=given.model,
            offline=True,
            servers=Servers(store=given.store),
        )
        relations = [name for name in edition.relations if covered(edition, run, name) >= COVERED]
        rows: defaultdict[str, list[Example]] = defaultdict(list)
        for example in workspace.examples(edition, edition.held_out):
            rows[example.query.relation].append(example)
        examples = [example for name in relations for example in rows[name][: given.per_relation]]
        return cls(run, relations, examples, data_dirs(given.data), models, how)

    @cached_property
    def corpus(self) -> Corpus:
        """Return the facts that may be taught."""
        return gather(self.run.workspace, self.places, [self.run.edition.name])

    def recipes(self) -> list[Recipe]:
        """Return a recipe for each column: the closed list plain, calibrated, and with the embedded default."""
        alone = self.recipe("nothing")
        embedded = read_recipe(self.run.workspace, POOLED).generate
        return [alone, self.recipe("background"), replace(alone, generate=(*embedded, *alone.generate))]

    def recipe(self, off: Literal["nothing", "background"]) -> Recipe:
        """Return a recipe that only ranks the closed list of the system's source. off: kind of calibration."""
        system = read_recipe(self.run.workspace, SYSTEM)
        source = next(
            spec
            for table in system.generate
            for spec in table.whole()
            if isinstance(spec, LanguageModelSpec) and spec.ranking
        )
        ranking = replace(source.ranking or CandidateRanking(), calibration=off)
        return replace(system, generate=(replace(source, ranking=ranking, only=tuple(self.relations)),))

    def floor(self) -> None:
        """Print the scores of the class prior and the embedded default on the same rows."""
        for name, label in {"prior": "class prior", POOLED: "embedded default"}.items():
            f1 = self.score(name, self.run, read_recipe(self.run.workspace, name))
            self.values[label] = {next(iter(COLUMNS.values())): f"{f1:.3f}"}
            print(f"{name:10}{f1:17.4f}", flush=True)

    def row(self, name: str) -> None:
        """Train the model unless it is the base, and print its F1 in all columns."""
        run, recipe, start = self.run, self.recipe("nothing"), time.process_time()
        if name == "base":
            self.show(name, run, start)
        elif name == "taught":
            self.show(name, self.taught(name, run, recipe), start)
        else:
            with with_random_weights(run, recipe) as drawn:
                assert drawn is not None  # the recipe's only source is a local model
                self.show(name, self.taught(name, *drawn), start)

    def taught(self, name: str, run: Run, recipe: Recipe) -> Run:
        """Return a run with a model's adapter. It is trained unless it exists."""
        out = self.models / name
        if not out.is_dir() or run.model is None:  # random weights are not saved, so their adapter is trained each time
            print("\n".join(self.corpus.proof), flush=True)
            start = time.process_time()
            with progress() as report:
                done = train(run, recipe, out, self.how, corpus=self.corpus, report=report)
            losses = ", ".join(f"{loss:.3f}" for loss in done.losses)
            spent = time.process_time() - start
            print(f"{name}: {done.steps} steps, loss {losses}, {spent:.0f} CPU-seconds", flush=True)
        return replace(run, model=str(out), models={})

    def show(self, name: str, run: Run, start: float) -> None:
        """Print one row of the table."""
        scores = [self.score(name, run, recipe) for recipe in self.recipes()]
        took = time.process_time() - start
        self.values[name] = {column: f"{f1:.3f}" for column, f1 in zip(COLUMNS.values(), scores, strict=True)}
        print(f"{name:10}" + "".join(f"{score:17.4f}" for score in scores) + f"{took:13.0f}", flush=True)

    def score(self, name: str, run: Run, recipe: Recipe) -> float:
        """Return official F1 out of fold."""
        with progress() as report:
            sets = propose(run, recipe, [example.query for example in self.examples], report).sets
        tuned = tune(sets, self.examples, run.edition, relations=run.relations, trials=0)
        rows: defaultdict[str, list[float]] = defaultdict(list)
        for made, example in zip(tuned.predictions, self.examples, strict=True):
            rows[example.query.relation].append(official({made.query: made}, [example], run.edition).overall.f1)
        self.found.setdefault(name, list(rows.values()))
        return tuned.cv_macro_f1

    def differences(self) -> None:
        """Print the lead of the taught model over each other one, with the 95 % interval of paired rows."""
        taught = self.found.pop("taught", [])
        for name, rows in self.found.items() if taught else ():
            strata = [[*zip(ours, theirs, strict=True)] for ours, theirs in zip(taught, rows, strict=True)]
            apart = mean(mean(one - other for one, other in pairs) for pairs in strata)
            width = half_width(strata, lambda means: (means[:, :, 0] - means[:, :, 1]).mean(axis=1)) or 0.0
            print(f"taught less {name}: {apart:.4f} +- {width:.4f}", flush=True)


def covered(edition: Edition, run: Run, name: str) -> float:
    """Return the share of train objects in the relation's closed list."""
    rows = [row for row in run.train if row.query.relation == name]
    counts = ClosedSet.of(edition, run.relations[name], rows).hits[:, 1:].sum(axis=0)
    how = CandidateRanking()
    listed = sorted(counts[counts >= how.rows], reverse=True)[: how.objects]
    return float(sum(listed) / max(counts.sum(), 1))


if __name__ == "__main__":
    with error_status():
        main()
