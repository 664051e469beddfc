"""Comparison of two runs on the same queries: their difference in F1, and a test of its significance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmkbc.edition import Edition
from lmkbc.errors import InputError
from lmkbc.evaluation.official import evaluate
from lmkbc.files.columns import Given, respelled, texts_of
from lmkbc.run.saved import SavedRun
from lmkbc.scoring.table import RowScore
from lmkbc.types import Pair

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LEVEL = 0.95
ALPHA = 1 - LEVEL
RESAMPLES = 10_000
CELLS = 1 << 18
"""Cells of the lattice on which the distribution of sign-flipped sums is computed."""
_REACH = 9.0
"""Standard deviations that a sum of flipped signs exceeds with probability below 1e-17 (Hoeffding 1963)."""
_VANISHED = 1e-18
_BLOCK = 256


@dataclass(frozen=True, slots=True)
class Difference:
    """Macro-F1 of two runs over the same rows, and their difference (second - first).

    low, high: the 95 % interval; None if a relation has only one row.
    p: p-value of the sign-flip test.
    corrected: p after Holm's correction, over all relations or over all pairs of runs.
    won, lost: numbers of rows on which the second run scores higher or lower.
    """

    rows: int
    first: float
    second: float
    difference: float
    low: float | None
    high: float | None
    p: float
    corrected: float
    won: int
    lost: int

    @property
    def width(self) -> float | None:
        """Return the half-width of the interval; None if there is no interval."""
        if self.low is None or self.high is None:
            return None
        return max(self.difference - self.low, self.high - self.difference)

    @property
    def is_significant(self) -> bool:
        """Return whether the difference is significant after the correction."""
        return self.corrected < ALPHA

    @property
    def result(self) -> str:
        """Return "differs", "not significant", or "equal" if every row scores the same."""
        if not self.won and not self.lost:
            return "equal"
        return "differs" if self.is_significant else "not significant"


class ChangedRow(NamedTuple):
    """Row on which two runs score differently. first_answer, second_answer, gold: the objects, as text."""

    subject: str
    relation: str
    first: float
    second: float
    first_answer: tuple[str, ...]
    second_answer: tuple[str, ...]
    gold: tuple[str, ...]

    @property
    def is_won(self) -> bool:
        """Return whether the second run scores higher."""
        return self.second > self.first


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison of a second run with a first run, overall and per relation.

    subjects: number of subjects that were resampled.
    relations: relation name -> difference.
    changed: the rows won and lost, the largest differences first.
    """

    first: str
    second: str
    subjects: int
    overall: Difference
    relations: Mapping[str, Difference]
    changed: Sequence[ChangedRow] = field(default=(), repr=False)

    @property
    def verdict(self) -> str:
        """Return the result in a sentence or two."""
        whole = self.overall
        span = "" if whole.low is None else f", 95 % interval {whole.low:+.3f} to {whole.high:+.3f}"
        p = shown_p(whole.corrected)
        numbers = f"({whole.difference:+.3f}{span}, p {p if p.startswith('<') else f'= {p}'})"
        tops = [name for name, one in self.relations.items() if one.is_significant]
        where = (
            f"per relation, {', '.join(tops)} differ{'s' * (len(tops) == 1)}"
            if tops
            else "no relation differs on its own"
        )
        if not whole.won and not whole.lost:
            return f"{self.second} scores as {self.first} does on every row."
        if not whole.is_significant:
            seen = f" What {self.subjects} subjects show starts at about {whole.width:.3f}." if whole.width else ""
            return f"The difference between {self.first} and {self.second} is not significant {numbers}; {where}.{seen}"
        better, other = (self.second, self.first) if whole.difference > 0 else (self.first, self.second)
        return f"{better} is better than {other} {numbers}; {where}, once corrected for {len(self.relations)}."


def shown_p(p: float) -> str:
    """Return a p-value as text, such as "0.034" or "< 0.001"."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def compare(
    edition: Edition,
    gold: Mapping[Pair, Any],
    runs: Sequence[SavedRun],
    names: Mapping[str, str] | None = None,
    baselines: int = 1,
) -> list[Comparison]:
    """Compare each of the first runs with all runs after it, on the gold queries that at least one run answers.

    baselines: number of these first runs. names: id -> name, for the changed rows. Raise InputError if no gold query is
    answered, or if a run lacks a query and the edition's official script requires every query.
    """
    answers = [_asked(run, edition, gold) for run in runs]
    asked = {pair: objects for pair, objects in gold.items() if any(pair in given for given in answers)}
    for run, given in zip(runs, answers, strict=True):
        if asked.keys().isdisjoint(given):
            raise InputError(f"{run.path} answers none of the gold's queries: name the split or --gold it belongs to")
    labels = Given.of(Path("gold"), edition.column, asked)
    columns = (Given.of(run.predictions, edition.column, given) for run, given in zip(runs, answers, strict=True))
    rows = [dict(evaluate(column, labels, edition, rows=True).table.rows) for column in columns]
    called = distinct_names(runs)
    macro = edition.metric.average == "relation"
    places = [(one, other) for one in range(baselines) for other in range(one + 1, len(runs))]
    pairs = [paired(called[one], called[other], rows[one], rows[other], macro) for one, other in places]
    corrected = holm([pair.overall.p for pair in pairs])
    return [
        replace(
            pair,
            overall=replace(pair.overall, corrected=p),
            changed=changed((rows[one], rows[other]), (answers[one], answers[other]), asked, names or {}),
        )
        for pair, p, (one, other) in zip(pairs, corrected, places, strict=True)
    ]


def _asked(run: SavedRun, edition: Edition, gold: Mapping[Pair, Any]) -> Mapping[Pair, Any]:
    """Return a run's answers by query, also those whose subject is spelled otherwise."""
    answers = run.answers(edition)
    lacking = (pair for pair in gold if pair not in answers)
    spelled = respelled(run.predictions, lacking, answers.keys() - gold.keys())
    return {**answers, **{pair: answers[row] for pair, row in spelled.items()}}


def changed(
    scores: tuple[Mapping[Pair, RowScore], Mapping[Pair, RowScore]],
    answers: tuple[Mapping[Pair, Any], Mapping[Pair, Any]],
    gold: Mapping[Pair, Any],
    names: Mapping[str, str],
) -> tuple[ChangedRow, ...]:
    """Return the rows on which two runs score differently, the largest differences first."""

    def texts(objects: Any) -> tuple[str, ...]:
        return tuple(_text(item, names) for item in texts_of(objects) if item)

    made = [
        ChangedRow(*pair, one.f1, other.f1, *(texts(given.get(pair, ())) for given in (*answers, gold)))
        for pair, one in scores[0].items()
        if (other := scores[1][pair]).f1 != one.f1
    ]
    return tuple(sorted(made, key=lambda row: (-abs(row.second - row.first), row.relation, row.subject)))


def _text(item: str, names: Mapping[str, str]) -> str:
    """Return an object as text: "name (id)" for an id with a known name."""
    return f"{name} ({item})" if (name := names.get(item)) and name != item else item


def distinct_names(runs: Sequence[SavedRun]) -> list[str]:
    """Return the runs' names; whole paths if two runs have the same name."""
    names = [run.name for run in runs]
    return names if len(set(names)) == len(names) else [str(run.path) for run in runs]


def paired(
    first: str, second: str, one: Mapping[Pair, RowScore], other: Mapping[Pair, RowScore], by_relation: bool
) -> Comparison:
    """Compare two runs' row scores on the same queries.

    by_relation: whether to average over relations; else the average is over rows.
    """
    subjects, of_subject = np.unique([subject for subject, _ in one], return_inverse=True)
    relations, of_relation = np.unique([relation for _, relation in one], return_inverse=True)
    scores = np.array([[score.f1, other[pair].f1] for pair, score in one.items()])
    counts = np.bincount(of_relation)
    each = {
        str(name): difference(scores[of_relation == place], np.arange(counts[place]), np.zeros(counts[place], int))
        for place, name in enumerate(relations)
    }
    for (name, part), p in zip(each.items(), holm([part.p for part in each.values()]), strict=True):
        each[name] = replace(part, corrected=p)
    whole = difference(scores, of_subject, of_relation if by_relation else np.zeros(len(scores), int))
    return Comparison(first, second, len(subjects), whole, each)


def difference(scores: Floats, subjects: Ints, strata: Ints) -> Difference:
    """Compare two columns of row scores, averaged within strata, then over strata.

    scores: (n, 2).
    subjects: number of the subject of each row, (n,).
    strata: number of the average that the row belongs to, (n,), from 0.
    """
    sizes = np.bincount(strata)
    weights = 1 / (len(sizes) * sizes[strata])
    gaps = scores[:, 1] - scores[:, 0]
    first, second = weights @ scores
    low, high = _interval(gaps, subjects, strata) or (None, None)
    p = sign_flip(_summed(subjects, weights * gaps))
    won, lost = int((gaps > 0).sum()), int((gaps < 0).sum())
    return Difference(len(gaps), float(first), float(second), float(second - first), low, high, p, p, won, lost)


def score_interval(rows: Mapping[Pair, RowScore], *, by_relation: bool) -> tuple[float, float] | None:
    """Return the 95 % interval of a run's macro-F1 over samples of subjects.

    Return None if a relation has only one row. by_relation: whether to average over relations; else over rows.
    """
    subjects = np.unique([subject for subject, _ in rows], return_inverse=True)[1]
    strata = np.unique([relation for _, relation in rows], return_inverse=True)[1]
    scores = np.array([score.f1 for score in rows.values()])
    found = _interval(scores, subjects, strata if by_relation else np.zeros(len(scores), int))
    return found and (max(0.0, found[0]), min(1.0, found[1]))


def _interval(values: Floats, subjects: Ints, strata: Ints) -> tuple[float, float] | None:
    """Return the interval of a mean that is taken within strata, then over strata.

    Return None if a stratum has only one row.
    """
    sizes = np.bincount(strata)
    if sizes.min() < 2:  # one row has no variance
        return None
    weights, means = 1 / (len(sizes) * sizes[strata]), np.bincount(strata, values) / sizes
    small = np.sqrt(sizes / (sizes - 1))  # else the interval of small strata is too narrow
    deviations = weights * small[strata] * (values - means[strata])
    stretched = _stretch(_summed(strata, deviations**2), sizes) * deviations
    return interval(float(weights @ values), _summed(subjects, stretched))


def _stretch(variances: Floats, sizes: Ints) -> float:
    """Return the ratio of a Student quantile to the normal one, which the bootstrap approximates (Hesterberg 2015).

    The degrees of freedom are Satterthwaite's: few if one small relation makes up most of the variance.
    """
    if not variances.any():
        return 1.0
    freedom = variances.sum() ** 2 / (variances**2 / (sizes - 1)).sum()
    return student(freedom) / NormalDist().inv_cdf((1 + LEVEL) / 2)


def student(freedom: float) -> float:
    """Return the upper quantile of Student's distribution that bounds its central `LEVEL`.

    freedom: degrees of freedom, 1 or more. With t = sqrt(freedom) * tan(angle), the density is a power of a cosine.
    Gauss-Legendre quadrature gives its integral to 12 digits. Newton's steps approach the angle from below, since the
    integral is concave.
    """
    nodes, weights = np.polynomial.legendre.leggauss(40)
    top = 2 / math.sqrt(math.pi) * math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2))
    angle = 0.0
    for _ in range(30):
        inside = top * angle * float(weights @ np.cos(angle * (nodes + 1) / 2) ** (freedom - 1)) / 2
        angle += (LEVEL - inside) / (top * math.cos(angle) ** (freedom - 1))
    return math.sqrt(freedom) * math.tan(angle)


def _summed(groups: Ints, values: Floats) -> Floats:
    """Return the sum of the values in each group."""
    return np.bincount(groups, values).astype(np.float64)


def interval(difference: float, deviations: Floats) -> tuple[float, float]:
    """Return the bootstrap interval of a difference of means, at `LEVEL`.

    deviations: per subject, the change if it is drawn once more. Each subject is drawn Poisson(1) times (Chamandy et
    al. 2012). Subjects of several relations thus stay whole, and every relation keeps its weight.
    """
    values, counts = np.unique(np.round(deviations, 12), return_counts=True)
    draw = np.random.default_rng(0)
    drawn = np.full(RESAMPLES, difference)
    for start in range(0, len(values), _BLOCK):
        part = slice(start, start + _BLOCK)
        drawn += (draw.poisson(counts[part], (RESAMPLES, len(counts[part]))) - counts[part]) @ values[part]
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def sign_flip(contributions: Floats) -> float:
    """Return the two-sided p-value of a sum when the sign of each subject's contribution is random (Fisher 1935).

    All 2^n flips are counted, without sampling. The distribution of their sums is a product of cosines, transformed
    back from the frequencies on a lattice (Pagano and Tritchler 1983). Rounding to the lattice may move a sum by some
    1e-4 standard deviations. Sums that close below the observed one count as reaching it. The p-value may thus be
    slightly too large, but never too small.
    """
    sizes = np.abs(contributions)
    scale = math.sqrt(float(sizes @ sizes))
    if scale == 0.0:
        return 1.0
    values, counts = np.unique(np.round(sizes[sizes > 0] / scale, 13), return_counts=True)
    total = float(values @ counts)
    step = 2.01 * min(total, _REACH) / CELLS
    units = np.rint(values / step).astype(np.int64)
    rounded = np.abs(values - units * step)
    slack = min(float(counts @ rounded), _REACH * math.sqrt(float(counts @ rounded**2))) + 1e-9
    shares = np.fft.irfft(_spectrum(units, counts), CELLS)
    sums = np.minimum(np.arange(CELLS), CELLS - np.arange(CELLS)) * step
    observed = abs(float(contributions.sum())) / scale
    reached = float(shares[sums >= observed - slack].sum())
    return min(1.0, max(reached, 2.0 ** (1 - min(int(counts.sum()), 40))))


def _spectrum(units: Ints, counts: Ints) -> Floats:
    """Return the product of cosines at all frequencies of the lattice; values near 0 are dropped early."""
    cosines = np.cos(2 * np.pi * np.arange(CELLS) / CELLS)
    frequencies = np.arange(CELLS // 2 + 1)
    product = np.ones(len(frequencies))
    for place in np.argsort(-counts, kind="stable"):
        product *= cosines[frequencies * units[place] % CELLS] ** counts[place]
        if place % 8 == 0:
            left = np.abs(product) > _VANISHED
            frequencies, product = frequencies[left], product[left]
    whole = np.zeros(CELLS // 2 + 1)
    whole[frequencies] = product
    return whole


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values after Holm's correction (Holm 1979), in the given order."""
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    corrected = [0.0] * len(p_values)
    least = 0.0
    for rank, place in enumerate(order):
        least = max(least, min(1.0, (len(order) - rank) * p_values[place]))
        corrected[place] = least
    return corrected
