"""Coverage of the intervals of `lmkbc audit`, on simulated bases with known truth.

    python eval/bench/audit.py [--draws N] [--sizes N ...] [--facts N] [--seed N] [--figures FILE]

Each row is a base of 20 relations with its own kind of wrong confidences, and a sample size. It shows the base's true
precision. It shows the percentage of draws whose 95 % interval holds the truth, for the whole base and for its
relations together. It shows the mean width of the interval, and the same for a plain random sample with Wilson's
interval. The right coverage is 95. If few facts are wrong, counts are so small that no interval covers evenly.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import figures
import numpy as np

from lmkbc.audit.estimate import Interval, shares, stratified
from lmkbc.audit.sample import BinKey, ConfidenceBin, SamplePlan, bin_of, planned
from lmkbc.cli.terminal import error_status
from lmkbc.select.calibration import log_odds, logistic
from lmkbc.select.ranking import Floats

RELATIONS = 20
Truth = Callable[[Floats, Floats], Floats]
"""Function from confidences, and a normal random number of each fact's relation, to probabilities."""
UNIFORM, SURE = (1.2, 1.0), (19.0, 1.0)
"""Beta distributions of confidence: over the whole range, and as `--precision` leaves it."""
BASES: Mapping[str, tuple[tuple[float, float], Truth]] = {
    "calibrated": (UNIFORM, lambda p, _: p),
    "overconfident": (UNIFORM, lambda p, _: logistic(0.5 * log_odds(p) - 0.8)),
    "underconfident": (UNIFORM, lambda p, _: logistic(1.5 * log_odds(p) + 1)),
    "wrong by relation": (UNIFORM, lambda p, own: logistic(log_odds(p) + 1.5 * own)),
    "uninformative": (UNIFORM, lambda p, _: np.full_like(p, 0.6)),
    "all of confidence 1": ((1e6, 1e-6), lambda p, _: np.full_like(p, 0.7)),
    "at 0.95": (SURE, lambda p, _: p),
    "at 0.95, fell short": (SURE, lambda p, _: logistic(log_odds(p) - 1.5)),
    "few wrong": (UNIFORM, lambda p, _: np.full_like(p, 0.985)),
}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=4000)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 200, 500])
    parser.add_argument("--facts", type=int, default=20_000, help="facts of a base, about")
    parser.add_argument("--seed", type=int, default=0)
    figures.option(parser)
    given = parser.parse_args(argv)
    values: dict[str, dict[str, str]] = {}
    for name in BASES:
        for size in given.sizes:
            row = values[f"{name}, {size}"] = cells(np.random.default_rng(given.seed), name, size, given)
            print(f"{name:20} {size:4}  " + "  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    figures.record(given.figures, "audit", values)


def cells(random: np.random.Generator, name: str, size: int, given: Any) -> dict[str, str]:
    """Return a row's figures, formatted as documents show them."""
    right, bins = base(random, name, given.facts)
    plan = planned(bins, size)
    total, correct = sum(one.size for one in bins.values()), sum(right.values())
    drawn, found = draws(random, plan, bins, right, given.draws)
    made = shares(plan.cells, drawn, found)
    whole = made[None]
    covered = [
        _covers(found_of, _truth(one, bins, right))[_labelled(plan, drawn, one)]
        for one, found_of in made.items()
        if one is not None
    ]
    simple = random.hypergeometric(correct, total - correct, size, (given.draws, 1)).astype(np.float64)
    plain = stratified(np.array([float(total)]), np.full_like(simple, size), simple, (simple + 0.5) / (size + 1))
    return {
        "strata": f"{len(plan.strata)}",
        "truth": f"{correct / total:.3f}",
        "coverage": f"{100 * _covers(whole, correct / total).mean():.1f}",
        "relations": f"{100 * np.concatenate(covered).mean():.1f}",
        "width": f"{_width(whole):.3f}",
        "plain coverage": f"{100 * _covers(plain, correct / total).mean():.1f}",
        "plain width": f"{_width(plain):.3f}",
    }


def base(random: np.random.Generator, name: str, facts: int) -> tuple[dict[BinKey, int], dict[BinKey, ConfidenceBin]]:
    """Return the right facts and the bins of a base with known truth. Sizes of relations differ by a factor of 50."""
    (first, second), true = BASES[name]
    parts = random.lognormal(0.0, 1.2, RELATIONS)
    relation = np.repeat(np.arange(RELATIONS), np.maximum(facts * parts / parts.sum(), 20).astype(int))
    p = np.round(random.beta(first, second, len(relation)), 6)
    is_right = random.random(len(p)) < true(p, random.normal(size=RELATIONS)[relation])
    right, bins = dict[BinKey, int](), dict[BinKey, ConfidenceBin]()
    for number, confidence, good in zip(relation, p, is_right, strict=True):
        key = BinKey(f"relation {number:02}", bin_of(confidence))
        own = bins.setdefault(key, ConfidenceBin())
        own.size += 1
        own.total += float(confidence)
        right[key] = right.get(key, 0) + int(good)
    return right, {key: bins[key] for key in sorted(bins)}


def draws(
    random: np.random.Generator,
    plan: SamplePlan,
    bins: Mapping[BinKey, ConfidenceBin],
    right: Mapping[BinKey, int],
    count: int,
) -> tuple[Floats, Floats]:
    """Return the numbers of facts and of right facts that samples have in each cell: (draws, cells) each."""
    of, good = np.zeros(len(plan.cells), int), np.zeros(len(plan.cells), int)
    for key, cell in plan.cell_of.items():
        of[cell] += bins[key].size
        good[cell] += right[key]
    drawn, found = np.zeros((count, len(of))), np.zeros((count, len(of)))
    for number, size in enumerate(plan.counts):
        own = [at for at, cell in enumerate(plan.cells) if cell.stratum == number]
        kinds = np.concatenate([good[own], of[own] - good[own]])
        each = random.multivariate_hypergeometric(kinds, size, count, method="marginals")
        found[:, own] = each[:, : len(own)]
        drawn[:, own] = each[:, : len(own)] + each[:, len(own) :]
    return drawn, found


def _truth(name: str, bins: Mapping[BinKey, ConfidenceBin], right: Mapping[BinKey, int]) -> float:
    own = [key for key in bins if key.relation == name]
    return sum(right[key] for key in own) / sum(bins[key].size for key in own)


def _labelled(plan: SamplePlan, drawn: Floats, name: str) -> Any:
    """Return for each draw whether it has a fact of a relation."""
    return drawn[:, [cell.relation == name for cell in plan.cells]].sum(-1) > 0


def _covers(found: Interval, truth: float) -> Any:
    return (found.low <= truth + 1e-9) & (truth - 1e-9 <= found.high)


def _width(found: Interval) -> float:
    return float((found.high - found.low).mean())


if __name__ == "__main__":
    with error_status():
        main()
