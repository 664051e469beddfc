"""Test of the statistics of `lmkbc compare`: coverage of the 95 % interval and type I error, on simulated runs.

    python eval/bench/compare.py [--trials 1000] [--seed 0]

Each design has a population of rows with a difficulty, and scores of two systems in quarters of F1. Many rows have the
same score for both. Trials draw rows from it, so the true difference is known. For type I error, both systems have the
same distribution of scores. Designs differ in the numbers of relations and rows, and in how unequal the relations are.
They also differ in the kind of average, in how often the systems agree, and in how many subjects occur in two
relations.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

from lmkbc.cli.terminal import error_status
from lmkbc.compare import Difference, difference
from lmkbc.scoring import paired
from lmkbc.scoring.paired import Floats


@dataclass(frozen=True)
class Design:
    """One kind of experiment. sizes: rows of each relation.

    agree: share of rows with the same score for both systems.
    """

    name: str
    sizes: tuple[int, ...]
    by_relation: bool
    agree: float
    shared: int = 0


DESIGNS = (
    Design("21 relations x 90 rows, macro", (90,) * 21, True, 0.6),
    Design("8 relations x 20 rows, macro", (20,) * 8, True, 0.6),
    Design("5 relations, 10 to 200 rows, macro", (10, 60, 100, 100, 200), True, 0.6),
    Design("5 relations, 10 to 200 rows, rows", (10, 60, 100, 100, 200), False, 0.6),
    Design("4 relations x 60 rows, subjects shared", (60,) * 4, True, 0.6, shared=40),
    Design("21 relations x 90 rows, 95 % alike", (90,) * 21, True, 0.95),
    Design("one relation of 20 rows", (20,), True, 0.3),
    Design("one relation of 100 rows", (100,), True, 0.6),
)


def trial(draw: np.random.Generator, design: Design, gain: float) -> Difference:
    """Return the difference of two systems on new rows.

    gain: increase of the second system's chance where they differ.
    """
    knowledge = draw.normal(size=design.shared)  # knowledge of a shared subject affects all its relations
    scores, subjects = [], []
    for relation, size in enumerate(design.sizes):
        know = draw.normal(size=size)
        know[: design.shared] = knowledge
        easy = 1 / (1 + np.exp(-know - 0.5 * (relation % 3 - 1)))
        one = draw.binomial(4, easy)
        other = np.where(draw.random(size) < design.agree, one, draw.binomial(4, np.clip(easy + gain, 0, 1)))
        scores.append(np.stack([one, other], axis=1) / 4)
        own = np.arange(size)
        subjects.append(np.where(own < design.shared, own, 1000 * (relation + 1) + own))
    strata = np.repeat(np.arange(len(design.sizes)), design.sizes)
    of_subject = np.unique(np.concatenate(subjects), return_inverse=True)[1]
    return difference(np.concatenate(scores), of_subject, strata if design.by_relation else np.zeros_like(strata))


def truth(design: Design, gain: float) -> float:
    """Return the true difference, estimated from many more rows than in any trial."""
    draw = np.random.default_rng(12345)
    means = []
    for relation in range(3):
        easy = 1 / (1 + np.exp(-draw.normal(size=2_000_000) - 0.5 * (relation - 1)))
        means.append(float((1 - design.agree) * (np.clip(easy + gain, 0, 1) - easy).mean()))
    sizes = np.array(design.sizes if not design.by_relation else (1,) * len(design.sizes), dtype=float)
    weights: Floats = sizes / sizes.sum()
    return float(sum(weight * means[relation % 3] for relation, weight in enumerate(weights)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    paired.RESAMPLES = 2000  # in place of 10,000: enough for this many trials
    draw = np.random.default_rng(arguments.seed)
    print(f"{arguments.trials} trials each; wanted: coverage 93 to 97 %, type I error at most 6 %")
    print(f"{'design':40} coverage  type I  power")
    for design in DESIGNS:
        true = truth(design, 0.1)
        covered = powered = wrong = 0
        for _ in range(arguments.trials):
            whole = trial(draw, design, 0.1)
            covered += whole.low is not None and whole.high is not None and whole.low <= true <= whole.high
            powered += whole.p < 0.05
            wrong += trial(draw, design, 0.0).p < 0.05
        shares = [f"{100 * count / arguments.trials:6.1f} %" for count in (covered, wrong, powered)]
        print(f"{design.name:40} " + "".join(shares), flush=True)


if __name__ == "__main__":
    with error_status():
        main()
