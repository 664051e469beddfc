"""Right facts per million tokens of a base that grows: breadth first, by value, and by value without an end.

    python eval/bench/growth.py [--tokens 3000000] [--seeds 5] [--first 100] [--precisions 0.9 0.8 ...]

No model is asked. A simulated model of known precision answers within a real build. Its relations have the precisions
of eight relations that were checked by hand (Veseli et al., EMNLP Findings 2023). Each seed draws their classes,
lengths and prompts. Objects are on average more obscure than their subjects. Precision falls with obscurity, as GPTKB's
does with depth.

A quarter of the wrong objects are invented: 17 % of GPTKB's entities could not be verified, and 69 % of its facts. The
model also answers about invented subjects, with too much confidence: nothing is right, yet confidences have half of
their usual mean. All other confidences are calibrated.
"""

from __future__ import annotations

import argparse
import csv
import math
import random
import statistics
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import figures

from lmkbc.cli.terminal import error_status

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from opened import recipe_of
from space import SPACE

from lmkbc.build.build import Build, BuildPlan
from lmkbc.build.directory import Directory
from lmkbc.build.engine import Answers, ShardPart, Work
from lmkbc.build.facts import Tables
from lmkbc.build.frontier import Frontier
from lmkbc.build.growth import Bounds, Growth
from lmkbc.build.manifest import started
from lmkbc.build.subjects import Classes, SubjectFile
from lmkbc.progress import silent
from lmkbc.relation import EntityType, Relation
from lmkbc.run.base import Run
from lmkbc.types import Candidate, CandidateSet, Query, Source, State

CLASSES, GIVEN = 4, 20
PRECISIONS = (1.0, 0.94, 0.92, 0.82, 0.64, 0.30, 0.24, 0.14)
DECAY, STEP = 0.85, 4.0
"""Factor of a precision for a subject that is STEP times more obscure, and STEP, the mean increase per level."""
INVENTED = 0.25
"""Share of the wrong objects that do not exist."""
SPREAD = 4.0
"""Concentration of confidences around the precision. A lower value makes them more informative."""
ORDERS: Mapping[str, Mapping[str, Any] | None] = {
    "breadth first": None,
    "by value, no relation ends": {"precision": 0.0},
    "by value": {},
}


@dataclass(frozen=True)
class Known:
    """Knowledge of a relation: precision on the best known subjects, objects per query, tokens of a prompt."""

    precision: float
    objects: float
    prompt: int
    object_class: int


Drawn = dict[str, tuple[Relation, Known]]
"""Relations by name, with the simulated model's knowledge of each."""


@dataclass
class StandIn:
    """The simulated model, as an engine of a build. It stops answering when its tokens are spent."""

    known: Mapping[str, Known]
    seed: int
    budget: int
    workers: int = 0
    spent: int = 0
    facts: int = 0
    right: int = 0
    usage: Sequence[Mapping[str, Any]] = field(default_factory=list)

    def tables(self, work: Work, parts: Iterable[ShardPart]) -> Iterator[tuple[ShardPart, Tables]]:
        """Yield each part with its tables."""
        for part in parts:
            sets = [self._answer(ask.query) for ask in part.asks]
            yield part, Answers(part.asks, sets).tables(work.maker)

    def _answer(self, query: Query) -> CandidateSet:
        if self.spent > self.budget:
            return CandidateSet(query, (), (State.MISSING,))
        known, draw = self.known[query.relation], random.Random(f"{self.seed} {query.subject} {query.relation}")
        _, kind, rank = query.subject.split()
        exists = kind == "real"
        precision = 0.99 * known.precision * DECAY ** math.log(int(rank), STEP)
        found: dict[str, float] = {}
        for _ in range(max(1, round(draw.expovariate(1 / known.objects)))):
            mean = precision if exists else precision / 2
            sure = draw.betavariate(SPREAD * mean, SPREAD * (1 - mean))
            is_right = exists and draw.random() < sure
            there = is_right or draw.random() >= INVENTED
            obscure = float(rank) * draw.lognormvariate(0, 1) * STEP + draw.random() * GIVEN
            name = f"class{known.object_class} {'real' if there else 'invented'} {int(obscure) + 1}"
            if name not in found:
                self.right += is_right
            found.setdefault(name, round(sure, 6))
        tokens = known.prompt + 10 * len(found)
        self.spent += tokens
        self.facts += len(found)
        made = tuple(Candidate(name, sure, (Source("stand-in"),)) for name, sure in found.items())
        return CandidateSet(query, made, tokens=tokens)


def world(seed: int, precisions: Sequence[float]) -> Drawn:
    """Draw relations: some for each class, with objects of any class."""
    draw, made = random.Random(seed), Drawn()
    kinds = [EntityType(f"class{number}", f"Q{900000 + number}") for number in range(CLASSES)]
    like = SPACE.relation("country-borders")
    for number, precision in enumerate(draw.sample(precisions, len(precisions))):
        target, name = draw.randrange(CLASSES), f"relation-{number}"
        known = Known(precision, 2 ** draw.uniform(0, 3), draw.randrange(200, 500), target)
        types = replace(like, subject_type=kinds[number % CLASSES], object_type=kinds[target], symmetric=False)
        made[name] = replace(types, name=name, names=(name,), property=f"P{number + 1}"), known
    return made


def grown(folder: Path, drawn: Drawn, seed: int, tokens: int, by_value: Mapping[str, Any] | None) -> StandIn:
    """Grow a base until the tokens are spent. Return the model, which has the counts."""
    relations = {name: relation for name, (relation, _) in drawn.items()}
    model = StandIn({name: known for name, (_, known) in drawn.items()}, seed, tokens)
    with (folder / "subjects.csv").open("w", newline="") as file:
        rows = [(f"class{number % CLASSES} real {number + 1}", f"class{number % CLASSES}") for number in range(GIVEN)]
        csv.writer(file).writerows([("name", "class"), *rows])
    classes = Classes(relations, relations.values())
    plan = BuildPlan(SubjectFile(folder / "subjects.csv"), relations, classes)
    names = {name: name for name in relations}
    frontier = None if by_value is None else Frontier(classes, names, 99, **by_value)
    recipe = recipe_of({"component": "prior"}, select={"rule": "cutoff", "threshold": 0.0})
    run = Run(workspace=SPACE, edition=SPACE.edition("mini"), offline=True)
    directory = Directory(folder / "kb")
    with directory.held():
        build = Build(run, recipe, recipe.select, started({}, relations), engine=model)
        build.into(directory, plan, Growth(Bounds(depth=99), classes, relations, frontier=frontier), silent)
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=3_000_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=100, help="the first seed; those below 10 chose the settings")
    parser.add_argument("--precisions", type=float, nargs="+", default=PRECISIONS, help="one for each relation")
    figures.option(parser)
    given = parser.parse_args()
    rows: dict[str, dict[str, str]] = {}
    first: list[float] = []
    print("| order | right facts per million tokens | precision | against breadth first |\n|---|---|---|---|")
    for order, by_value in ORDERS.items():
        rates, precisions = [], []
        for seed in range(given.first, given.first + given.seeds):
            with tempfile.TemporaryDirectory() as name:
                drawn = world(seed, given.precisions)
                model = grown(Path(name), drawn, seed, given.tokens, by_value)
            rates.append(model.right / model.spent * 1e6)
            precisions.append(model.right / model.facts)
        first = first or rates
        ratios = [rate / before for rate, before in zip(rates, first, strict=True)]
        cells = {
            "right facts per million tokens": shown(rates, ".0f"),
            "precision": shown(precisions, ".2f"),
            "against breadth first": shown(ratios, ".2f") + " x",
        }
        rows[order] = cells
        print(f"| {order} | {' | '.join(cells.values())} |", flush=True)
    figures.record(given.figures, "growth", rows)


def shown(values: Sequence[float], form: str) -> str:
    """Return mean and standard deviation."""
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.mean(values):{form}} ± {deviation:{form}}"


if __name__ == "__main__":
    with error_status():
        main()
