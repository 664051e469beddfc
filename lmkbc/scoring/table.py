"""The official scores: precision, recall and F1 per row, per relation and overall, as the editions print them."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, repeat
from typing import Any, Literal, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from lmkbc.scoring.matchers import Scorer

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
    rows: Sequence[tuple[Pair, RowScore]] = ()


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
        tally = Tally(self, rows)
        answers = map(predicted.get, gold, repeat(()))
        for place, ((subject, relation), objects, answer) in enumerate(zip(gold, gold.values(), answers, strict=True)):
            tally.add(place, subject, relation, answer, objects)
        return tally.table()


class Tally:
    """Rows as they are scored: four numbers are kept of each, and its subject where the rows are wanted later.

    place: where the row stands in the gold file; rows may come in any order.
    """

    def __init__(self, metric: Metric, rows: bool = False) -> None:
        self._metric, self._score = metric, metric.scorer.score
        self._counts: defaultdict[str, array[int]] = defaultdict(lambda: array("q"))
        self._subjects: defaultdict[str, list[str]] | None = defaultdict(list) if rows else None

    def add(self, place: int, subject: str, relation: str, predicted: Any, gold: Any) -> None:
        """Score one row of raw column values. Raises what the scorer does of a value that it cannot read."""
        hits, answers, objects = self._score(predicted, gold, relation)
        self._counts[relation].extend((place, hits, answers, objects))
        if self._subjects is not None:
            self._subjects[relation].append(subject)

    def table(self) -> Table:
        """The official result of all rows."""
        counts = {name: np.frombuffer(given, dtype=np.int64).reshape(-1, 4) for name, given in self._counts.items()}
        orders = {name: np.argsort(given[:, 0], kind="stable") for name, given in counts.items()}
        by_relation = {name: given[orders[name], 1:] for name, given in counts.items()}
        first = sorted(by_relation, key=lambda name: counts[name][:, 0].min())
        scored = {name: _Rows(by_relation[name]) for name in sorted(by_relation)}
        relations = {name: part.summary() for name, part in scored.items()}
        overall = _Rows(
            np.concatenate([by_relation[name] for name in first] or [np.empty(0, dtype=np.int64)])
        ).summary()
        if self._metric.average == "relation" and relations:
            p, r, f1_ = (_mean([getattr(s, name) for s in relations.values()]) for name in ("p", "r", "f1"))
            overall = replace(overall, p=p, r=r, f1=f1_)
        if self._subjects is None:
            return Table(overall, relations)
        subjects = {name: [given[at] for at in orders[name].tolist()] for name, given in self._subjects.items()}
        return Table(overall, relations, RowScores(scored, subjects))


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


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

    def row(self, place: int) -> RowScore:
        columns = (self.p, self.r, self.f1, self.hits, self.predicted, self.gold)
        return RowScore(*(column[place].item() for column in columns))

    def summary(self) -> Summary:
        n = len(self.hits) or 1
        hits, predicted, gold = (int(column.sum()) for column in (self.hits, self.predicted, self.gold))
        micro_p = hits / predicted if predicted else 1.0
        micro_r = hits / gold if gold else 1.0
        micro_f1 = 2 * micro_p * micro_r / (micro_p + micro_r) if micro_p + micro_r else 0.0
        p, r, macro_f1 = (float(column.sum()) / n for column in (self.p, self.r, self.f1))
        empty = int((self.predicted == 0).sum())
        return Summary(p, r, macro_f1, micro_p, micro_r, micro_f1, predicted / n, empty, len(self.hits))


class RowScores(Sequence[tuple[Pair, RowScore]]):
    """The score of every row in the official order, by relation, then subject; each is made when it is asked for."""

    def __init__(self, scored: Mapping[str, _Rows], subjects: Mapping[str, Sequence[str]]) -> None:
        self._scored, self._subjects = scored, subjects
        self._relations = list(scored)
        self._orders = [sorted(range(len(subjects[name])), key=subjects[name].__getitem__) for name in scored]
        self._ends = list(accumulate(map(len, self._orders)))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __iter__(self) -> Iterator[tuple[Pair, RowScore]]:
        for relation, order in zip(self._relations, self._orders, strict=True):
            part, subjects = self._scored[relation], self._subjects[relation]
            yield from (((subjects[place], relation), part.row(place)) for place in order)

    @overload
    def __getitem__(self, index: int) -> tuple[Pair, RowScore]: ...
    @overload
    def __getitem__(self, index: slice) -> list[tuple[Pair, RowScore]]: ...
    def __getitem__(self, index: int | slice) -> tuple[Pair, RowScore] | list[tuple[Pair, RowScore]]:
        if isinstance(index, slice):
            return [self[one] for one in range(*index.indices(len(self)))]
        at = range(len(self))[index]
        number = bisect_right(self._ends, at)
        order, relation = self._orders[number], self._relations[number]
        place = order[at - self._ends[number]]  # counted from the end of the relation's rows
        return (self._subjects[relation][place], relation), self._scored[relation].row(place)
