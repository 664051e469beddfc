"""What an audit finds: precision by labels, and by what is known already."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from lmkbc.audit.estimate import Recalibration, shares
from lmkbc.audit.known import Mark, MarkedFact
from lmkbc.audit.labels import RIGHT, UNKNOWN, WRONG
from lmkbc.audit.sample import BINS, Sample, bin_of
from lmkbc.files.tables import AT_ONCE
from lmkbc.report.panels import wilson

HELD, SHORT, UNSURE = "held", "fell short", "cannot tell"
"""What became of a promised precision."""
AT_MOST = 20
"""Known objects of a subject that a row names."""


@dataclass(frozen=True, slots=True)
class LabelledPrecision:
    """Precision of a relation by labels, of the whole base where relation is None.

    unlabelled, unknown: facts of the sample without a label, or with "unknown", which are left out. precision, low,
    high: None without labels. confidence: mean over all facts; recalibrated: the same by the labels. promised:
    precision that the build was asked for, and `promise` what became of it; None where it was asked for none.
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


@dataclass(frozen=True, slots=True)
class KnownPrecision:
    """Facts beside what is known, of a relation and a bin of confidence; of all bins, or relations, where None.

    checked: facts whose subject is known in the property; precision: the known share of them, with its interval.
    """

    relation: str | None
    at_least: float | None
    facts: int
    known: int
    contradicting: int
    new: int
    checked: int
    precision: float | None
    low: float | None
    high: float | None


def recalibrated(sample: Sample, labels: Mapping[int, str | None]) -> Recalibration:
    """Return what labels make of confidences."""
    judged = [(place, labels[place]) for place in sample.drawn if labels.get(place) in (RIGHT, WRONG)]
    relations = [sample.cells[sample.cell_of[place]].relation for place, _ in judged]
    confidence = np.array([sample.drawn[place].confidence for place, _ in judged])
    right = np.array([float(label == RIGHT) for _, label in judged])
    return Recalibration.of(relations, confidence, np.ones_like(right), right) if judged else Recalibration()


def by_labels(
    sample: Sample, labels: Mapping[int, str | None], made: Recalibration, promised: float | None
) -> list[LabelledPrecision]:
    """Return precision per relation, and last of the whole base."""
    counts = Counter((sample.cell_of[place], labels.get(place)) for place in sample.drawn)
    right = np.array([float(counts[cell, RIGHT]) for cell in range(len(sample.cells))])
    drawn = right + [counts[cell, WRONG] for cell in range(len(sample.cells))]
    confidence = np.array([cell.confidence for cell in sample.cells])
    expected = made.expected([cell.relation for cell in sample.cells], confidence)
    rows = []
    for name, found in shares(sample.cells, drawn, right).items():
        own = [at for at, cell in enumerate(sample.cells) if name in (None, cell.relation)]
        facts = sum(sample.cells[at].size for at in own)
        weights = np.array([sample.cells[at].size / facts for at in own])
        labelled = int(drawn[own].sum())
        share, low, high = (round(float(value), 4) if labelled else None for value in found)
        rows.append(
            LabelledPrecision(
                name,
                facts,
                labelled,
                int(right[own].sum()),
                sum(counts[at, UNKNOWN] for at in own),
                sum(counts[at, None] for at in own),
                share,
                low,
                high,
                round(float(weights @ confidence[own]), 4),
                round(float(weights @ expected[own]), 4),
                promised,
                None if promised is None else _promise(promised, low, high),
            )
        )
    return sorted(rows, key=lambda row: (row.relation is None, row.relation))


def _promise(promised: float, low: float | None, high: float | None) -> str:
    if low is None or high is None or low < promised <= high:
        return UNSURE
    return HELD if low >= promised else SHORT


class KnownCounts:
    """Counts of marked facts, as they come, by relation and bin of confidence."""

    def __init__(self) -> None:
        self._marks, self._checked = Counter[tuple[str, int, Mark]](), Counter[tuple[str, int]]()
        self._sure = defaultdict[tuple[str, int], float](float)

    def counted(self, facts: Iterable[MarkedFact]) -> Iterator[MarkedFact]:
        """Count facts, and hand them on."""
        for one in facts:
            key = one.fact.relation, bin_of(one.fact.confidence)
            self._marks[*key, one.mark] += 1
            self._sure[key] += one.fact.confidence
            self._checked[key] += one.is_checked
            yield one

    def recalibrated(self) -> Recalibration:
        """Return what the known share of checked facts makes of confidences."""
        keys = [key for key, count in self._checked.items() if count]
        if not keys:
            return Recalibration()
        of = [sum(self._marks[*key, mark] for mark in Mark) for key in keys]
        sure = np.array([self._sure[key] for key in keys]) / of
        checked, right = (
            [float(count) for count in counts]
            for counts in zip(*((self._checked[key], self._marks[*key, Mark.KNOWN]) for key in keys), strict=True)
        )
        return Recalibration.of([name for name, _ in keys], sure, np.array(checked), np.array(right))

    def rows(self) -> list[KnownPrecision]:
        """Return precision by bin, of each relation, and of all."""
        relations = sorted({name for name, _ in self._sure})
        made = []
        for name in (*relations, None):
            bins = sorted({at for own, at in self._sure if name in (None, own)})
            made += [self._row(name, at, relations if name is None else [name], [at]) for at in bins]
            made.append(self._row(name, None, relations if name is None else [name], bins))
        return made

    def _row(self, name: str | None, at: int | None, relations: Sequence[str], bins: Sequence[int]) -> KnownPrecision:
        keys = [(relation, bin_) for relation in relations for bin_ in bins]
        known, contradicting, new = (
            sum(self._marks[*key, mark] for key in keys) for mark in (Mark.KNOWN, Mark.CONTRADICTING, Mark.NEW)
        )
        checked, values = sum(self._checked[key] for key in keys), list[float | None]([None] * 3)
        if checked:
            low, high = wilson(np.array([float(known)]), np.array([float(checked)]))
            values = [round(float(value), 4) for value in (known / checked, low[0], high[0])]
        facts = known + contradicting + new
        return KnownPrecision(
            name, None if at is None else at / BINS, facts, known, contradicting, new, checked, *values
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
}


def frames(facts: Iterable[MarkedFact]) -> Iterator[pl.DataFrame]:
    """Yield marked facts as data frames of some rows. known: what is known of the subject, where it is another."""
    rows = list[tuple[Any, ...]]()
    for fact, mark, _, known in facts:
        others = "; ".join(sorted(known)[:AT_MOST]) if mark is not Mark.KNOWN else None
        about = fact.relation, fact.about.property, fact.subject_row, fact.subject, fact.subject_id
        rows.append(
            (mark.value, *about, fact.object, fact.object_id, fact.literal, fact.confidence, others or None, fact.model)
        )
        if len(rows) == AT_ONCE:
            yield pl.DataFrame(rows, schema=COLUMNS, orient="row")
            rows.clear()
    yield pl.DataFrame(rows, schema=COLUMNS, orient="row")


def listed(marked: Iterable[pl.DataFrame], made: Recalibration) -> pl.DataFrame:
    """Return marked facts with what is expected of each: new, contradicting, known, and of each the likeliest first."""
    whole = pl.concat(marked)
    expected = made.expected(whole["relation"].to_list(), whole["confidence"].to_numpy())
    order, down = ["mark", "expected", "confidence", "relation", "subject_row"], [False, True, True, False, False]
    return whole.insert_column(1, pl.Series("expected", expected.round(6))).sort(
        order, descending=down, maintain_order=True
    )
