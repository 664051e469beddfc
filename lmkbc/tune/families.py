"""Families of rules, simplest first, and how each is fitted to some queries of a relation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache, partial
from itertools import combinations, product
from typing import Any, get_args

import numpy as np

from lmkbc import plugins
from lmkbc.errors import InputError, did_you_mean
from lmkbc.select.composed import AbstentionThreshold, Evidence
from lmkbc.select.cutoffs import Cutoff, Quorum, Relative, Sticky, TopK
from lmkbc.select.expected_f1 import Calibrated, ExpectedF1
from lmkbc.select.numeric import Ball, ExpectedScore, LogCluster, StabMid, WeightedMedian
from lmkbc.select.ranking import Floats, Ints, Mask
from lmkbc.select.registry import RULES, rule_class
from lmkbc.select.rule import Choice, Range, Real, Rule, significant
from lmkbc.select.sources import SourceFilter
from lmkbc.tune.calibrate import PRIOR, Weights, fit_expected_f1
from lmkbc.tune.outcomes import Outcomes
from lmkbc.tune.sweep import Curve, cutoff_steps, gate_steps

WIDTHS = (0.01, 0.025, 0.05, 0.1)
RATIOS = tuple(step / 100 for step in range(40, 100, 6))  # a thinned grid of Li T. et al. 2022
POINTS = 400
"""Points of a whole grid at most. Each of n parameters has the n-th root of it, at least two."""
MOST_SOURCES = 12
"""Sources of which every subset is tried: 4,095 of them."""
UNFITTED = TopK(k=1)
"""Rule where there is no training row at all: the best candidate."""


@dataclass(frozen=True, eq=False)
class Task:
    """Tuning task of a relation: its queries' outcomes, and the kind of its answers.

    prior: weights of the evidence over all relations, on the same training rows (`calibrate.general`).
    """

    relation: str
    outcomes: Outcomes
    nullable: bool
    prior: Weights = field(default_factory=lambda: PRIOR)

    @property
    def numeric(self) -> bool:
        """Return whether objects are numbers."""
        return self.outcomes.tolerance is not None

    @property
    def approximate(self) -> bool:
        """Return whether objects are numbers that are right when they are near."""
        return bool(self.outcomes.tolerance)

    @property
    def several(self) -> bool:
        """Return whether several models propose candidates."""
        return bool(self.outcomes.ranking.models.max(initial=0) > 1)

    @property
    def min_objects(self) -> int:
        """Return the fewest objects that an answer has."""
        return 0 if self.nullable else 1

    def held_out(self, rows: Mask, inner: Ints, fit: Callable[[Mask, int], Rule]) -> Floats:
        """Return F1 of each of the queries `rows`, by the rule fitted to those of the other inner folds.

        inner: the fold of each query, (n,). fit: from the other folds' rows, and the fold, to a rule.
        """
        f1 = np.zeros(len(rows))
        for fold in np.unique(inner[rows]):
            held = rows & (inner == fold)
            f1[held] = self.outcomes.f1(fit(rows & (inner != fold), int(fold)))[held]
        return f1[rows]


Fit = Callable[[Task, Mask], Rule]


def fit_top_k(task: Task, rows: Mask) -> Rule:
    """Return the best number of objects to give always."""
    depth = min(task.outcomes.prefix_f1.shape[1], 11)
    totals = task.outcomes.prefix_f1[rows, :depth].sum(axis=0)
    totals[: min(task.min_objects, depth - 1)] = -1.0
    return TopK(k=max(int(np.argmax(totals)), task.min_objects))


def fit_cutoff(task: Task, rows: Mask) -> Cutoff:
    """Return the exact best absolute cut-off."""
    return Cutoff(threshold=_sweep(task, rows, relative=False), min=task.min_objects)


def fit_relative(task: Task, rows: Mask) -> Rule:
    """Return the exact best cut-off relative to the best candidate."""
    return Relative(ratio=_sweep(task, rows, relative=True), min=task.min_objects)


def _sweep(task: Task, rows: Mask, *, relative: bool) -> float:
    return Curve.of(task.outcomes.cached(cutoff_steps, min_objects=task.min_objects, relative=relative), rows).best()[0]


def fit_sticky(task: Task, rows: Mask) -> Rule:
    """Return the best relaxation of the exact best cut-off, of both kinds."""
    threshold = _sweep(task, rows, relative=False)
    options = [
        Sticky(threshold=threshold, ratio=ratio, reference=reference, min=task.min_objects)
        for reference in ("previous", "threshold")
        for ratio in RATIOS
    ]
    return _best(task, rows, options)


def fit_quorum(task: Task, rows: Mask) -> Rule:
    """Return the best number of models that must agree."""
    most = int(task.outcomes.ranking.models.max(initial=1))
    return _best(task, rows, [Quorum(models=models) for models in range(1, most + 1)])


def fit_source_filter(task: Task, rows: Mask) -> Rule:
    """Return the best sources, and the share of them that must name an object (Biester et al. 2023: which wordings).

    To the best one that is added which helps most, again and again while F1 rises.
    """
    best = partial(_best_share, task, rows)
    left, sources, total = list(task.outcomes.ranking.by_model), tuple[str, ...](), -1.0
    rule: Rule = UNFITTED
    while left:
        (reached, other), added = max(((best((*sources, one)), one) for one in left), key=lambda tried: tried[0][0])
        if reached < total + 1e-9:
            break
        total, rule, sources = reached, other, (*sources, added)
        left.remove(added)
    return rule


def fit_source_subsets(task: Task, rows: Mask) -> Rule:
    """Return the best of all subsets of the sources, with its share (Biester et al. 2023); of equals, the largest.

    So many choices suit the rows that they were made on: cross-validation tells what they are worth on others. Of more
    than MOST_SOURCES, sources are added one by one.
    """
    names = tuple(task.outcomes.ranking.by_model)
    if not names or len(names) > MOST_SOURCES:
        return fit_source_filter(task, rows)
    total = -1.0
    rule: Rule = UNFITTED
    for subset in (one for size in range(len(names), 0, -1) for one in combinations(names, size)):
        reached, other = _best_share(task, rows, subset)
        if reached > total + 1e-9:
            total, rule = reached, other
    return rule


def _best_share(task: Task, rows: Mask, sources: tuple[str, ...]) -> tuple[float, Rule]:
    """Return the sum of F1 and the rule for the best share of some sources that must name an object."""
    shares = dict.fromkeys(significant(count / len(sources)) for count in range(1, len(sources) + 1))
    options = [SourceFilter(sources=sources, inner=Cutoff(threshold=share, min=task.min_objects)) for share in shares]
    rule = _best(task, rows, options)
    return float(task.outcomes.cached_f1(rule)[rows].sum()), rule


def fit_gate(task: Task, rows: Mask) -> Rule:
    """Return the exact best gate of each evidence, before the cut-off that is best where there is something to find."""
    full = rows & ~task.outcomes.empty
    inner = fit_cutoff(replace(task, nullable=False), full if full.any() else rows)
    answered, silent = task.outcomes.f1(inner), task.outcomes.empty.astype(float)
    gates: list[AbstentionThreshold] = []
    for evidence in get_args(Evidence):
        gate = AbstentionThreshold(inner=inner, threshold=1.0, evidence=evidence)
        strength = gate.strength(task.outcomes.ranking)
        if np.ptp(strength[rows]) > 0:
            threshold, _ = Curve.of(gate_steps(strength, answered, silent), rows).best()
            gates.append(AbstentionThreshold(inner=inner, threshold=threshold, evidence=evidence))
    return _best(task, rows, gates) if gates else inner


def fit_as_scored(task: Task, _: Mask) -> Rule:
    """Return expected F1 of the scores as they are: there is nothing to learn if they are probabilities already."""
    return ExpectedF1(min=task.min_objects)


def fit_expectation(task: Task, rows: Mask) -> Rule:
    """Return expected F1 under probabilities calibrated on the queries."""
    return fit_expected_f1(task.outcomes, rows, task.prior, nullable=task.nullable)


def _grid(options: Sequence[Rule]) -> Fit:
    return lambda task, rows: _best(task, rows, options)


def _best(task: Task, rows: Mask, options: Sequence[Rule]) -> Rule:
    """Return the option with the highest F1; on a tie the middle one of the longest run of neighbours."""
    totals = np.array([task.outcomes.cached_f1(option)[rows].sum() for option in options])
    good = np.flatnonzero(totals >= totals.max() - 1e-9)
    run = max(np.split(good, np.flatnonzero(np.diff(good) > 1) + 1), key=len)
    return options[int(run[len(run) // 2])]


def _given(kind: type[ExpectedScore | StabMid]) -> Fit:
    """Return a fit that takes the scorer's own tolerance: there is nothing to learn."""
    return lambda task, _: kind(tolerance=task.outcomes.tolerance or 0.0)


SUBSETS = "source-subsets"
"""Family that is tried where it is named: it takes minutes, and most who name no rules have no use for it."""

FAMILIES: Mapping[str, Fit] = {
    ExpectedScore.name: _given(ExpectedScore),
    StabMid.name: _given(StabMid),
    TopK.name: fit_top_k,
    Cutoff.name: fit_cutoff,
    Relative.name: fit_relative,
    WeightedMedian.name: _grid([WeightedMedian(quantile=quantile) for quantile in (0.4, 0.45, 0.5, 0.55, 0.6)]),
    Ball.name: _grid([Ball(tolerance=width) for width in WIDTHS]),
    LogCluster.name: _grid([LogCluster(width=width) for width in WIDTHS]),
    Quorum.name: fit_quorum,
    AbstentionThreshold.name: fit_gate,
    Sticky.name: fit_sticky,
    SourceFilter.name: fit_source_filter,
    SUBSETS: fit_source_subsets,
    ExpectedF1.name: fit_as_scored,
    Calibrated.name: fit_expectation,
}
"""Rule name -> fit, by the number of tuned parameters: what is compared by cross-validation, simplest first."""


def fit(task: Task, family: str, rows: Mask) -> Rule:
    """Return a family's rule fitted to some queries; the best candidate where there are none."""
    if not rows.any():
        return UNFITTED
    return FAMILIES[family](task, rows) if family in FAMILIES else _best(task, rows, grid(family))


NUMERIC = frozenset({ExpectedScore.name, StabMid.name, WeightedMedian.name, Ball.name, LogCluster.name})


def applicable(task: Task, rules: Sequence[str] | None) -> Iterator[str]:
    """Yield the families that make sense for a relation, in order of complexity. InputError for an unknown one.

    The cut-off is always among them: it serves every relation, and is what the others must beat.
    """
    check_rules(rules)
    for name in FAMILIES:
        needs = {
            Quorum.name: task.several,
            AbstentionThreshold.name: task.nullable,
            SourceFilter.name: len(task.outcomes.ranking.by_model) > 2,
            SUBSETS: rules is not None and len(task.outcomes.ranking.by_model) > 1,
        }
        fits = needs.get(name, task.numeric or name not in NUMERIC)
        if fits and (rules is None or name in rules or name == Cutoff.name):
            yield name
    yield from dict.fromkeys(name for name in rules or () if name not in FAMILIES)


def check_rules(rules: Sequence[str] | None) -> None:
    """Raise InputError for a rule that cannot be tuned: neither a family's, nor one that says what to search."""
    for name in rules or ():
        if name in FAMILIES:
            continue
        if name not in RULES and name not in plugins.names(plugins.RULES):
            raise InputError(f"rule {name!r} cannot be tuned: {did_you_mean(name, FAMILIES)}")
        grid(name)


@cache
def grid(name: str) -> Sequence[Rule]:
    """Return a rule's settings, in order of its parameters. InputError for a rule without search ranges."""
    kind = rule_class(name)
    if not kind.search:
        raise InputError(f"rule {name!r} cannot be tuned: it names no parameter to search")
    for own in fields(kind):  # type: ignore[arg-type]
        if own.default is MISSING and own.default_factory is MISSING and own.name not in kind.search:
            raise InputError(f"rule {name!r} cannot be tuned: {own.name!r} has neither a default nor a search range")
    count = max(2, int(POINTS ** (1 / len(kind.search))))
    axes = [_points(span, count) for span in kind.search.values()]
    return [kind(**dict(zip(kind.search, values, strict=True))) for values in product(*axes)]


def _points(span: Range, count: int) -> list[Any]:
    if isinstance(span, Choice):
        return list(span.options)
    if isinstance(span, Real):
        spaced = np.geomspace if span.log else np.linspace
        return [significant(float(value)) for value in spaced(span.low, span.high, count)]
    whole = np.linspace(span.low, span.high, min(count, span.high - span.low + 1))
    return [int(value) for value in np.unique(whole.round())]
