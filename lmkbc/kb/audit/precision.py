"""Precision of a base: by labels of a sample, with its interval, and by comparison with known facts.

Confidences are recalibrated by both. The last axis of arrays is strata or bins. Any axes before it are allowed, such as
the draws of a simulation.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from lmkbc.kb.audit.known import Mark, MarkedFact
from lmkbc.kb.audit.sample import BINS, BinKey, Sample, SampleCell, key_of
from lmkbc.kb.base.reviews import REVIEWED, Verdict
from lmkbc.report.figures import wilson
from lmkbc.select.calibration import SHARE_EDGE, log_odds, logistic
from lmkbc.select.ranking import Floats
from lmkbc.select.rule import significant

MODEL, LABELS = "model", "labels"
"""Origin of facts: no labelled row states them, or one does, so that a base can have them without a model."""
HELD, SHORT, UNSURE = "held", "fell short", "cannot tell"
"""Results of the check of a promised precision."""
AT_MOST = 20
"""Most known objects of a subject that a row lists."""


@dataclass(frozen=True, slots=True)
class LabelledPrecision:
    """Precision of a relation by labels; of all relations if relation is None.

    origin: the facts that are meant: `MODEL`, `LABELS`, or None for all.
    unlabelled, unknown: facts of the sample without a label, and with the label "unknown". Both are left out.
    precision, low, high: precision and its interval; None without labels.
    confidence: mean over all facts. recalibrated: mean of the recalibrated confidence.
    promised: precision that the build had to reach; None if there was no such request.
    promise: whether the promise was kept (`HELD`, `SHORT` or `UNSURE`); None without a promise.
    """

    relation: str | None
    facts: int
    labelled: int
    right: int
    unknown: int
    unlabelled: int
    precision: float | None
    low: float | None
    high: float | None
    confidence: float
    recalibrated: float
    promised: float | None
    promise: str | None
    origin: str | None = None


@dataclass(frozen=True, slots=True)
class KnownPrecision:
    """Match of facts with known ones, for a relation and a bin of confidence; None stands for all.

    origin: the facts that are meant: `MODEL`, `LABELS`, or None for all.
    refining: facts that say more than a known value. uncovered: facts about which what is known cannot tell. checked:
    facts whose subject has a known value of the
    property. precision: share of known facts among them, with its interval. confidence: their mean confidence.
    """

    relation: str | None
    at_least: float | None
    facts: int
    known: int
    refining: int
    contradicting: int
    new: int
    uncovered: int
    checked: int
    precision: float | None
    low: float | None
    high: float | None
    confidence: float | None
    origin: str | None = None


def recalibrated(sample: Sample, labels: Mapping[int, Verdict | None]) -> Recalibration:
    """Return the recalibration of confidences by labels."""
    judged = [(place, labels[place]) for place in sample.drawn if labels.get(place) in (Verdict.RIGHT, Verdict.WRONG)]
    relations = [sample.cells[sample.cell_of[place]].relation for place, _ in judged]
    confidence = np.array([sample.drawn[place].confidence for place, _ in judged])
    right = np.array([float(label is Verdict.RIGHT) for _, label in judged])
    return Recalibration.of(relations, confidence, np.ones_like(right), right) if judged else Recalibration()


def by_labels(
    sample: Sample, labels: Mapping[int, Verdict | None], made: Recalibration, promised: float | None
) -> list[LabelledPrecision]:
    """Return precision per relation, and of the whole base in the last row.

    If labelled rows state facts of the base, precision by origin comes first, that without these facts at the top.
    """
    counts = Counter((sample.cell_of[place], labels.get(place)) for place in sample.drawn)
    kinds = (*Verdict, None)
    table = np.array([[float(counts[at, kind]) for kind in kinds] for at in range(len(sample.cells))])
    confidence = np.array([cell.confidence for cell in sample.cells])
    expected = made.expected([cell.relation for cell in sample.cells], confidence)
    means, made_rows = np.stack([confidence, expected], axis=-1), []
    for origin in origins(cell.stated for cell in sample.cells):
        some = [at for at, cell in enumerate(sample.cells) if origin in (None, origin_of(cell.stated))]
        cells, rows = [sample.cells[at] for at in some], []
        for name, interval in shares(cells, table[some, :2].sum(-1), table[some, 0]).items():
            places = [at for at in some if name in (None, sample.cells[at].relation)]
            sizes = np.array([sample.cells[at].size for at in places])
            rows.append(_row(name, sizes, table[places].sum(0), means[places], interval, promised, origin))
        made_rows += sorted(rows, key=lambda row: (row.relation is None, row.relation))
    return made_rows


def origins(stated: Iterable[bool]) -> list[str | None]:
    """Return the origins to show apart, and None for all facts. stated: whether labelled rows state each fact."""
    return [MODEL, LABELS, None] if any(stated) else [None]


def origin_of(stated: bool) -> str:
    """Return the origin of facts. stated: whether labelled rows state them."""
    return LABELS if stated else MODEL


def _row(
    name: str | None,
    sizes: Floats,
    counts: Floats,
    means: Floats,
    interval: Interval,
    promised: float | None,
    origin: str | None,
) -> LabelledPrecision:
    """Return a row. sizes, means: sizes and mean confidences of its cells.

    counts: right, wrong, unknown, unlabelled.
    """
    right, wrong, unknown, unlabelled = map(int, counts)
    share, low, high = (round(float(value), 4) if right + wrong else None for value in interval)
    confidence, expected = (round(float(mean), 4) for mean in sizes @ means / sizes.sum())
    promise = None if promised is None else _promise(promised, low, high)
    counted = int(sizes.sum()), right + wrong, right, unknown, unlabelled
    return LabelledPrecision(name, *counted, share, low, high, confidence, expected, promised, promise, origin)


def _promise(promised: float, low: float | None, high: float | None) -> str:
    if low is None or high is None or low < promised <= high:
        return UNSURE
    return HELD if low >= promised else SHORT


class KnownCounts:
    """Counts of compared facts by relation, bin and origin: all, known, refining, contradicting, not covered, checked.

    Then two sums of confidences: of all facts, and of the checked ones.
    """

    def __init__(self) -> None:
        self._bins = defaultdict[BinKey, Floats](lambda: np.zeros(8))

    def counted(self, facts: Iterable[MarkedFact]) -> Iterator[MarkedFact]:
        """Yield the facts unchanged, and count them."""
        for marked in facts:
            marks = [marked.mark is mark for mark in (Mark.KNOWN, Mark.REFINING, Mark.CONTRADICTING, Mark.UNCOVERED)]
            confidence = marked.fact.confidence
            checked = confidence if marked.is_checked else 0.0
            self._bins[key_of(marked.fact)] += (1, *marks, marked.is_checked, confidence, checked)
            yield marked

    def recalibrated(self) -> Recalibration:
        """Return the recalibration of confidences by the share of known facts among checked ones."""
        facts, known, _, _, _, checked, sure, _ = np.array([*self._bins.values()]).reshape(-1, 8).T
        return Recalibration.of([key.relation for key in self._bins], sure / facts, checked, known)

    def rows(self) -> list[KnownPrecision]:
        """Return precision by bin, for each relation and for all.

        If labelled rows state facts of the base, rows by origin come first, those without these facts at the top.
        """
        made = []
        for origin in origins(key.stated for key in self._bins):
            some = [key for key in self._bins if origin in (None, origin_of(key.stated))]
            for name in (*sorted({key.relation for key in some}), None):
                keys = [key for key in some if name in (None, key.relation)]
                for at in (*sorted({key.bin for key in keys}), None):
                    counts = np.array([self._bins[key] for key in keys if at in (None, key.bin)]).reshape(-1, 8).sum(0)
                    made.append(replace(_known_row(name, at, counts), origin=origin))
        return made


def _known_row(name: str | None, at: int | None, counts: Floats) -> KnownPrecision:
    facts, known, refining, contradicting, uncovered, checked = map(int, counts[:6])
    share = low = high = confidence = None
    if checked:
        low, high = (round(float(end[0]), 4) for end in wilson(counts[1:2], counts[5:6]))
        share, confidence = round(known / checked, 4), round(float(counts[7]) / checked, 4)
    least, new = None if at is None else at / BINS, facts - known - refining - contradicting - uncovered
    return KnownPrecision(
        name, least, facts, known, refining, contradicting, new, uncovered, checked, share, low, high, confidence
    )


COLUMNS: dict[str, Any] = {
    "mark": pl.Enum([mark.value for mark in Mark]),
    "relation": pl.String,
    "property": pl.String,
    "subject_row": pl.Int64,
    "subject": pl.String,
    "subject_id": pl.String,
    "object": pl.String,
    "object_id": pl.String,
    "literal": pl.String,
    "confidence": pl.Float64,
    "known": pl.String,
    "model": pl.String,
    "stated_by": pl.String,
    **dict.fromkeys(REVIEWED, pl.String),
}


def compared_rows(facts: Iterable[MarkedFact]) -> Iterator[tuple[Any, ...]]:
    """Yield compared facts as rows of a list. Column `known`: other known objects of the subject."""
    for fact, mark, _, known in facts:
        others = "; ".join(sorted(known)[:AT_MOST]) if mark is not Mark.KNOWN else None
        about = fact.relation, fact.about.property, fact.subject_row, fact.subject, fact.subject_id
        value = fact.object, fact.object_id, fact.literal, fact.confidence
        stated_by = ", ".join(fact.stated_by) if fact.stated_by else None
        decided = (getattr(fact, name) for name in REVIEWED)
        yield mark.value, *about, *value, others or None, fact.model, stated_by, *decided


def listed(marked: Iterable[pl.DataFrame], made: Recalibration) -> pl.DataFrame:
    """Return compared facts with expected precision, 1 of decided ones, by mark; in each group, the likeliest first."""
    whole = pl.concat(marked)
    expected = made.expected(whole["relation"].to_list(), whole["confidence"].to_numpy())
    order, down = ["mark", "expected", "confidence", "relation", "subject_row"], [False, True, True, False, False]
    sure = np.where(whole["reviewed_by"].is_not_null().to_numpy(), 1.0, expected.round(6))
    ranked = whole.insert_column(1, pl.Series("expected", sure))
    return ranked.sort(order, descending=down, maintain_order=True)


Z = NormalDist().inv_cdf(0.975)
RIDGE = 0.5
"""Strength of shrinkage of both weights, as the inverse variance of a Gaussian."""
AS_IT_IS = (0.0, 1.0)
"""Level and slope in the log-odds that leave a confidence as it is."""
STEPS = 30
PRIOR_FACTS = 0.5
"""Facts as which the expected precision of a stratum counts, in the estimate of its variance only."""


class Interval(NamedTuple):
    """A share and its 95 % interval."""

    share: Floats
    low: Floats
    high: Floats


def fitted(confidence: Floats, of: Floats, right: Floats, centre: Floats) -> Floats:
    """Return level and slope of logistic regressions on the log-odds of confidence, (..., 2), shrunk to a centre.

    confidence: (bins,). of: labelled facts, (..., bins). right: right facts among them, (..., bins). centre: level and
    slope towards which the weights are shrunk, (2,).
    """
    features = np.stack([np.ones_like(confidence), log_odds(confidence, SHARE_EDGE)], axis=-1)

    def loss(weights: Floats) -> Floats:
        z = weights @ features.T
        ridge = RIDGE / 2 * ((weights - centre) ** 2).sum(-1)
        return np.asarray((of * np.logaddexp(0.0, z) - right * z).sum(-1) + ridge)

    weights = np.broadcast_to(centre, (*right.shape[:-1], 2)).astype(np.float64)
    for _ in range(STEPS):
        p = logistic(weights @ features.T)
        gradient = (right - of * p) @ features - RIDGE * (weights - centre)
        curve = np.einsum("...b,bi,bj->...ij", of * p * (1 - p), features, features) + RIDGE * np.eye(2)
        step = np.linalg.solve(curve, gradient[..., None])[..., 0]
        sizes = 0.5 ** np.arange(0, 16, 3)
        losses = np.stack([loss(weights + size * step) for size in sizes])
        weights = weights + sizes[losses.argmin(0)][..., None] * step
        if np.abs(step).max(initial=0.0) < 1e-6:
            break
    return weights


def stratified(sizes: Floats, drawn: Floats, right: Floats, expected: Floats) -> Interval:
    """Return the share of right facts over strata: unbiased, with finite population correction and Wilson's interval.

    sizes: facts per stratum. drawn, right: labelled facts and right facts, (..., strata). expected: share of right
    facts by calibrated confidence.

    `expected` replaces the share of a stratum without labels, whose variance is then the largest possible for a share.
    In the variance of other strata, it counts as `PRIOR_FACTS` facts, so that three right facts of three are not
    certain. The division by 1 - n / (n + PRIOR_FACTS)^2 makes this variance unbiased if the expected share is the true
    one. Without a prior, n - 1 does the same. The interval is Wilson's for a simple sample with this variance.
    """
    weights, n = sizes / sizes.sum(), np.maximum(drawn, 1)
    shrunk = (right + PRIOR_FACTS * expected) / (drawn + PRIOR_FACTS)
    unbiased = 1 - drawn / (drawn + PRIOR_FACTS) ** 2
    left = (sizes - drawn) / np.maximum(sizes - 1, 1)
    spread = np.where(drawn > 0, shrunk * (1 - shrunk) / unbiased, 0.25)
    variance = (weights**2 * spread * left / n).sum(-1)
    share = (weights * np.where(drawn > 0, right / n, expected)).sum(-1)
    mean = (weights * shrunk).sum(-1)
    u = Z * Z * variance / (mean * (1 - mean))
    middle, half = (share + u / 2) / (1 + u), np.sqrt(u * share * (1 - share) + u * u / 4) / (1 + u)
    return Interval(share, np.clip(middle - half, 0.0, 1.0), np.clip(middle + half, 0.0, 1.0))


@dataclass(frozen=True, slots=True)
class Recalibration:
    """Level and slope for the log-odds of confidence: per relation, and pooled for relations without labels."""

    pooled: tuple[float, ...] = AS_IT_IS
    relations: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, relations: Sequence[str], confidence: Floats, of: Floats, right: Floats) -> Recalibration:
        """Fit to labelled facts or bins of facts, each with its relation. A relation is shrunk to the pooled fit."""
        pooled = fitted(confidence, of, right, np.array(AS_IT_IS))
        names, made = np.array(relations), dict[str, tuple[float, ...]]()
        for name in dict.fromkeys(relations):
            mask = names == name
            made[name] = _rounded(fitted(confidence[mask], of[mask], right[mask], pooled))
        return cls(_rounded(pooled), made)

    def expected(self, relations: Sequence[str], confidence: Floats) -> Floats:
        """Return the probability that each fact is right, given its relation and confidence."""
        weights = np.array([self.relations.get(name, self.pooled) for name in relations]).reshape(-1, 2)
        return logistic(weights[:, 0] + weights[:, 1] * log_odds(confidence, SHARE_EDGE))


def _rounded(weights: Floats) -> tuple[float, ...]:
    return tuple(significant(float(weight)) for weight in weights)


def shares(cells: Sequence[SampleCell], drawn: Floats, right: Floats) -> dict[str | None, Interval]:
    """Return precision by relation, and of the whole base under None. drawn, right: labelled facts, (..., cells)."""
    confidence, sizes = np.array([cell.confidence for cell in cells]), np.array([float(cell.size) for cell in cells])
    names, strata = np.array([cell.relation for cell in cells]), np.array([cell.stratum for cell in cells])
    z = log_odds(confidence, SHARE_EDGE)
    pooled = fitted(confidence, drawn, right, np.array(AS_IT_IS))
    expected, made = np.empty(right.shape), dict[str | None, Interval]()
    for name in dict.fromkeys(cell.relation for cell in cells):
        mask = names == name
        weights = fitted(confidence[mask], drawn[..., mask], right[..., mask], pooled)
        expected[..., mask] = logistic(weights[..., :1] + weights[..., 1:] * z[mask])
        made[name] = stratified(sizes[mask], drawn[..., mask], right[..., mask], expected[..., mask])
    within = (strata[:, None] == np.unique(strata)).astype(np.float64)
    of = sizes @ within
    return made | {None: stratified(of, drawn @ within, right @ within, (expected * sizes) @ within / of)}
