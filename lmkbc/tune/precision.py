"""Facts by descending confidence: their precision and recall at each threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lmkbc.select.calibration import PrecisionCurve, at_least
from lmkbc.select.ranking import Floats, Ints, Mask
from lmkbc.select.rule import significant
from lmkbc.tune.outcomes import Outcomes

STEP = 0.01
"""Step between the precisions of a curve; each step keeps only its lowest threshold."""
FINE = 1e6
"""Confidences are rounded down to a millionth."""


@dataclass(frozen=True, eq=False)
class Facts:
    """Facts that the candidates of a relation state, with descending confidence.

    Repeated answers of a query are left out.

    confidence: (f,).
    right: (f,), number of gold objects that each fact adds to those found by surer facts of its query.
    row: (f,), number of its query.
    gold: (n,), number of gold objects of each query.
    """

    confidence: Floats
    right: Ints
    row: Ints
    gold: Ints

    @classmethod
    def of(
        cls, outcomes: Outcomes, p: Floats, rows: Mask, lost: Sequence[int] = (), max_facts: int | None = None
    ) -> Facts:
        """Return the facts of some queries.

        p: confidences, (n, m). lost: gold objects of each failed query. max_facts: maximum number of facts of a query.
        """
        confidence: list[Floats] = []
        right: list[Ints] = []
        row: list[Ints] = []
        for place, query in enumerate(np.flatnonzero(rows).tolist()):
            matched = outcomes.matched[query]
            scores = p[query, : len(matched.keys)]
            order = np.argsort(-scores, kind="stable")[:max_facts]
            hits, answers = outcomes.counts(matched, order.tolist())
            new = np.flatnonzero(np.diff(answers))
            confidence.append(np.floor(scores[order[new]] * FINE) / FINE)
            right.append(np.diff(hits)[new])
            row.append(np.full(len(new), place))
        joined = np.concatenate(confidence) if confidence else np.zeros(0)
        sure = np.argsort(-joined, kind="stable")
        columns = [np.concatenate(part)[sure] if part else np.zeros(0, dtype=np.int64) for part in (right, row)]
        return cls(joined[sure], columns[0], columns[1], np.concatenate([outcomes.gold[rows], np.array(lost, int)]))

    @cached_property
    def _ends(self) -> Ints:
        """Return the last position of each distinct confidence."""
        return np.flatnonzero(np.diff(self.confidence, append=-1.0))

    def prefixes(self) -> tuple[Floats, Ints, Ints]:
        """Return each prefix that a threshold can keep: the threshold, the number of right facts, and the size."""
        ends = self._ends
        return self.confidence[ends], np.cumsum(self.right)[ends], ends + 1

    def recall_at(self, precision: float) -> float:
        """Return the recall of the largest prefix with a precision, chosen on the same facts; 0 if there is none."""
        return float(self.resampled_recall(precision, np.ones((1, len(self.gold)), dtype=np.int64))[0])

    def curve(self, max_facts: int | None = None) -> PrecisionCurve:
        """Return the thresholds with their promised precisions, which ascend in steps of at least `STEP`."""
        points: list[tuple[float, float, float]] = []
        total = max(int(self.gold.sum()), 1)
        columns = [column[::-1].tolist() for column in self.prefixes()]
        for threshold, right, kept in zip(*columns, strict=True):
            promised = int(at_least(right, kept) / STEP + 1e-9) * STEP
            if promised > (points[-1][1] if points else 0.0) + 1e-9:
                points.append((threshold, significant(promised), significant(min(right / total, 1.0))))
        thresholds, precisions, recalls = zip(*points, strict=True) if points else ((), (), ())
        return PrecisionCurve(threshold=thresholds, precision=precisions, recall=recalls, max=max_facts)

    def kept(self, thresholds: Floats) -> tuple[Ints, Ints]:
        """Return the number of facts of each query above its threshold, and the number of right ones, (n,) each."""
        sure, queries = self.confidence >= thresholds[self.row], len(self.gold)
        right = np.bincount(self.row[sure], self.right[sure], queries)
        return np.bincount(self.row[sure], minlength=queries), right.astype(np.int64)

    def resampled_recall(self, precision: float, draws: Ints) -> Floats:
        """Return the recall of the largest prefix with a precision, for each resample of the queries, (resamples,)."""
        ends = self._ends
        made = np.zeros(len(draws))
        for place, times in enumerate(draws):
            drawn = times[self.row]
            right, kept = np.cumsum(drawn * self.right)[ends], np.cumsum(drawn)[ends]
            good = np.flatnonzero((right >= precision * kept - 1e-9) & (kept > 0))
            made[place] = min(right[good[-1]] / max(times @ self.gold, 1), 1.0) if good.size else 0.0
        return made
