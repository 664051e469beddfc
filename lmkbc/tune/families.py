"""Families of rules, simplest first, and the fit of each family to some queries of a relation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache, partial
from itertools import combinations, product
from typing import Any, get_args

import numpy as np

from lmkbc.errors import InputError, did_you_mean
from lmkbc.registry import RULES
from lmkbc.select.composed import AbstentionThreshold, Evidence, SourceFilter
from lmkbc.select.cutoffs import Cutoff, Quorum, Relative, Sticky, TopK
from lmkbc.select.expected_f1 import Calibrated, ExpectedF1
from lmkbc.select.numeric import Ball, ExpectedScore, LogCluster, StabMid, WeightedMedian
from lmkbc.select.ranking import Floats, Ints, Mask
from lmkbc.select.rule import Choice, Range, Real, Rule, rule_class, significant
from lmkbc.tune.calibrate import PRIOR, Weights, fit_expected_f1
from lmkbc.tune.outcomes import Curve, Outcomes, cutoff_steps, gate_steps

WIDTHS = (0.01, 0.025, 0.05, 0.1)
RATIOS = tuple(step / 100 for step in range(40, 100, 6))  # a thinned grid of Li T. et al. 2022
POINTS = 400
"""Maximum number of points of a grid. Each of n parameters has the n-th root of it, at least two."""
MOST_SOURCES = 12
"""Maximum number of sources of which every subset is tried (4,095 subsets)."""
UNFITTED = TopK(k=1)
"""Rule if there is no training row: the best candidate."""


@dataclass(frozen=True, eq=False)
class Task:
    """Tuning task of a relation: the outcomes of its queries, and the kind of its answers.

    prior: weights of the evidence over all relations, from the same training rows (`calibrate.general`).
    own, own_f1: the recipe's rule, and the F1 of each query by it, (n,); (0,) if it is no choice.
    most: maximum number of objects of an answer; None for no limit.
    capped: the same task with at most one object, if the relation declares it.
    """

    relation: str
    outcomes: Outcomes
    nullable: bool
    prior: Weights = field(default_factory=lambda: PRIOR)
    own: Rule = UNFITTED
    own_f1: Floats = field(default_factory=lambda: np.zeros(0))
    most: int | None = None
    capped: Task | None = None

    @property
    def variants(self) -> Sequence[Task]:
        """Return the task, and the capped one with the same prior."""
        return [self, replace(self.capped, prior=self.prior)] if self.capped else [self]

    @property
    def numeric(self) -> bool:
        """Return whether objects are numbers."""
        return self.outcomes.tolerance is not None

    @property
    def approximate(self) -> bool:
        """Return whether objects are numbers that are right within a tolerance."""
        return bool(self.outcomes.tolerance)

    @property
    def several(self) -> bool:
        """Return whether several models propose candidates."""
        return bool(self.outcomes.ranking.models.max(initial=0) > 1)

    @property
    def min_objects(self) -> int:
        """Return the fewest objects of an answer."""
        return 0 if self.nullable else 1

    def held_out(self, rows: Mask, inner: Ints, fit: Callable[[Mask, int], Rule]) -> Floats:
        """Return the F1 of each query in `rows`, by the rule fitted to the other inner folds.

        inner: fold of each query, (n,). fit: called with the rows of the other folds and the fold's number; returns a
        rule.
        """
        f1 = np.zeros(len(rows))
        for fold in np.unique(inner[rows]):
            held = rows & (inner == fold)
            f1[held] = self.outcomes.f1(fit(rows & (inner != fold), int(fold)))[held]
        return f1[rows]


Fit = Callable[[Task, Mask], Rule]


def fit_top_k(task: Task, rows: Mask) -> Rule:
    """Return the best constant number of objects."""
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
    """Return the best relaxation of the exact best cut-off, over both kinds."""
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

    Greedy search: the source that helps most is added as long as F1 rises.
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
    """Return the best of all subsets of the sources, with its share (Biester et al.

    2023); on a tie, the largest subset.

    Among so many choices, some fit the training rows by chance. Cross-validation shows their value on other rows. With
    more than MOST_SOURCES sources, `fit_source_filter` adds them one by one.
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
    """Return the summed F1 and the rule for the best share of the given sources that must name an object."""
    shares = dict.fromkeys(significant(count / len(sources)) for count in range(1, len(sources) + 1))
    options = [SourceFilter(source=sources, inner=Cutoff(threshold=share, min=task.min_objects)) for share in shares]
    rule = _best(task, rows, options)
    return float(task.outcomes.cached_f1(rule)[rows].sum()), rule


def fit_gate(task: Task, rows: Mask) -> Rule:
    """Return the best abstention threshold over all kinds of evidence.

    The inner rule is the cut-off that is best for queries with objects.
    """
    full = rows & ~task.outcomes.empty
    inner = fit_cutoff(replace(task, nullable=False), full if full.any() else rows)
    answered, silent = task.outcomes.f1(inner), task.outcomes.prefix_f1[:, 0]
    gates: list[AbstentionThreshold] = []
    for evidence in get_args(Evidence):
        gate = AbstentionThreshold(inner=inner, threshold=1.0, evidence=evidence)
        strength = gate.strength(task.outcomes.ranking)
        if np.ptp(strength[rows]) > 0:
            threshold, _ = Curve.of(gate_steps(strength, answered, silent), rows).best()
            gates.append(AbstentionThreshold(inner=inner, threshold=threshold, evidence=evidence))
    return _best(task, rows, gates) if gates else inner


def fit_as_scored(task: Task, _: Mask) -> Rule:
    """Return expected F1 of the scores as they are; nothing is learned."""
    return ExpectedF1(min=task.min_objects)


def fit_expectation(task: Task, rows: Mask) -> Rule:
    """Return expected F1 under probabilities calibrated on the queries."""
    return fit_expected_f1(task.outcomes, rows, task.prior, nullable=task.nullable)


def _grid(options: Sequence[Rule]) -> Fit:
    return lambda task, rows: _best(task, rows, options)


def _best(task: Task, rows: Mask, options: Sequence[Rule]) -> Rule:
    """Return the option with the highest F1; on a tie, the middle of the longest run of neighbouring options."""
    totals = np.array([task.outcomes.cached_f1(option)[rows].sum() for option in options])
    good = np.flatnonzero(totals >= totals.max() - 1e-9)
    run = max(np.split(good, np.flatnonzero(np.diff(good) > 1) + 1), key=len)
    return options[int(run[len(run) // 2])]


def _given(kind: type[ExpectedScore | StabMid]) -> Fit:
    """Return a fit that uses the scorer's tolerance; nothing is learned."""
    return lambda task, _: kind(tolerance=task.outcomes.tolerance or 0.0)


SUBSETS = "source-subsets"
"""Family that is tried only if it is named, since it takes minutes and most users do not need it."""

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
"""Rule name -> fit, in order of the number of tuned parameters. Cross-validation compares them."""


def fit(task: Task, family: str, rows: Mask) -> Rule:
    """Return a family's rule fitted to some queries; `UNFITTED` if there are none."""
    if not rows.any():
        return UNFITTED
    return FAMILIES[family](task, rows) if family in FAMILIES else _best(task, rows, grid(family))


NUMERIC = frozenset({ExpectedScore.name, StabMid.name, WeightedMedian.name, Ball.name, LogCluster.name})


def applicable(task: Task, rules: Sequence[str] | None) -> Iterator[str]:
    """Yield the families that suit a relation, in order of complexity. Raise InputError for an unknown one.

    The cut-off is always among them: it suits every relation, and the others must beat it.
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
    """Raise InputError for a rule that cannot be tuned: it is no family and has no search ranges."""
    for name in rules or ():
        if name not in FAMILIES:
            if name not in RULES:
                raise InputError(f"rule {name!r} cannot be tuned: {did_you_mean(name, FAMILIES, 'lmkbc rules list')}")
            grid(name)


@cache
def grid(name: str) -> Sequence[Rule]:
    """Return a rule's settings on a grid, in order of its parameters. Raise InputError if it has no search ranges."""
    kind = rule_class(name)
    if not kind.search:
        raise InputError(f"rule {name!r} cannot be tuned: it names no parameter to search")
    for one in fields(kind):  # type: ignore[arg-type]
        if one.default is MISSING and one.default_factory is MISSING and one.name not in kind.search:
            raise InputError(f"rule {name!r} cannot be tuned: {one.name!r} has neither a default nor a search range")
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
