"""The official scores: precision, recall and F1 per row, per relation and overall, as the editions print them."""

from __future__ import annotations

import math
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from lmkbc.scorers import Scorer

Pair = tuple[str, str]
"""(subject, relation): what every official scorer indexes rows by."""


class RowScore(NamedTuple):
    """Precision, recall and F1 of one query, and the counts behind them."""

    p: float
    r: float
    f1: float
    hits: int
    predicted: int
    gold: int


def f1(hits: int, predicted: int, gold: int) -> float:
    """F1 of one query. Nothing predicted has precision 1, nothing to find has recall 1; precision is capped at 1."""
    p = min(hits / predicted, 1.0) if predicted else 1.0
    r = hits / gold if gold else 1.0
    return 2 * p * r / (p + r) if p + r else 0.0


@dataclass(frozen=True, slots=True)
class Summary:
    """What the official tables print for one relation, or over all of them."""

    p: float
    r: float
    f1: float
    micro_p: float
    micro_r: float
    micro_f1: float
    average_predictions: float
    empty_predictions: int
    rows: int


@dataclass(frozen=True, slots=True)
class Table:
    """An official result: the overall summary, one per relation (by name), and the rows where asked for."""

    overall: Summary
    relations: dict[str, Summary]
    rows: list[tuple[Pair, RowScore]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Metric:
    """An edition's scorer, what it averages over, and what it does with a query that the file lacks.

    average: "relation" (mean of relation means) or "row". missing: "empty" (an empty answer) or "refuse" (the
    official script stops). detailed: whether the official table has micro averages and prediction counts.
    """

    scorer: Scorer
    average: Literal["relation", "row"]
    missing: Literal["empty", "refuse"] = "empty"
    detailed: bool = False

    def evaluate(self, predicted: Mapping[Pair, Any], gold: Mapping[Pair, Any], rows: bool = False) -> Table:
        """Score all gold pairs. KeyError names a pair that is missing where the edition refuses that."""
        if self.missing == "refuse" and not predicted.keys() >= gold.keys():
            raise KeyError(next(pair for pair in gold if pair not in predicted))
        score = self.scorer.score
        by_relation: defaultdict[str, array[int]] = defaultdict(lambda: array("q"))
        answers = map(predicted.get, gold, repeat(()))
        for (_, relation), objects, answer in zip(gold, gold.values(), answers, strict=True):
            by_relation[relation].extend(score(answer, objects, relation))
        scored = {relation: _Rows(np.array(counts)) for relation, counts in sorted(by_relation.items())}
        relations = {relation: part.summary() for relation, part in scored.items()}
        overall = _Rows(
            np.concatenate([np.array(counts) for counts in by_relation.values()] or [np.empty(0)])
        ).summary()
        if self.average == "relation" and relations:
            p, r, f1_ = (_mean([getattr(s, name) for s in relations.values()]) for name in ("p", "r", "f1"))
            overall = replace(overall, p=p, r=r, f1=f1_)
        return Table(overall, relations, _row_scores(gold, scored) if rows else [])


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _row_scores(gold: Iterable[Pair], scored: Mapping[str, _Rows]) -> list[tuple[Pair, RowScore]]:
    """Per-row scores in the official order: by relation, then subject."""
    ordered = {relation: iter(part.rows()) for relation, part in scored.items()}
    rows = [(pair, next(ordered[pair[1]])) for pair in gold]
    return sorted(rows, key=lambda row: (row[0][1], row[0][0]))


class _Rows:
    """The counts of some rows (hits, predicted, gold, hits, ...) as columns, with their P, R and F1."""

    def __init__(self, counts: npt.NDArray[np.int64]) -> None:
        table = counts.reshape(-1, 3)
        self.hits, self.predicted, self.gold = table.T
        found = self.hits.astype(np.float64)
        ones = np.ones(len(table))
        self.p = np.minimum(np.divide(found, self.predicted, out=ones.copy(), where=self.predicted > 0), 1.0)
        self.r = np.divide(found, self.gold, out=ones, where=self.gold > 0)
        both = self.p + self.r
        self.f1 = np.divide(2 * self.p * self.r, both, out=np.zeros(len(table)), where=both > 0)

    def rows(self) -> list[RowScore]:
        columns = (self.p, self.r, self.f1, self.hits, self.predicted, self.gold)
        return list(map(RowScore, *(column.tolist() for column in columns)))

    def summary(self) -> Summary:
        n = len(self.hits) or 1
        hits, predicted, gold = (int(column.sum()) for column in (self.hits, self.predicted, self.gold))
        micro_p = hits / predicted if predicted else 1.0
        micro_r = hits / gold if gold else 1.0
        micro_f1 = 2 * micro_p * micro_r / (micro_p + micro_r) if micro_p + micro_r else 0.0
        p, r, macro_f1 = (float(column.sum()) / n for column in (self.p, self.r, self.f1))
        empty = int((self.predicted == 0).sum())
        return Summary(p, r, macro_f1, micro_p, micro_r, micro_f1, predicted / n, empty, len(self.hits))
