"""Official scores: precision, recall and F1 per row, per relation and overall, as the editions print them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import repeat
from typing import Any, Literal, NamedTuple

from lmkbc.scoring.matchers import Counts, Scorer

WRONG = ("(no readable answer)",)
"""Answer of a failed query. It matches nothing, so it is wrong even if gold is empty."""

Pair = tuple[str, str]
"""(subject, relation): the key of a row in all official scorers."""


class RowScore(NamedTuple):
    """Precision, recall and F1 of one query, and the counts behind them."""

    p: float
    r: float
    f1: float
    hits: int
    predicted: int
    gold: int


def row_score(hits: int, predicted: int, gold: int, vacuous: float = 1.0) -> RowScore:
    """Return the scores of one query.

    Precision is 1 without predictions, recall is 1 without gold; precision is at most 1.

    vacuous: value in place of these ones if only one side is empty; F1 does not depend on it.
    """
    p = min(hits / predicted, 1.0) if predicted else vacuous if gold else 1.0
    r = hits / gold if gold else vacuous if predicted else 1.0
    return RowScore(p, r, 2 * p * r / (p + r) if p + r else 0.0, hits, predicted, gold)


def f1(hits: int, predicted: int, gold: int) -> float:
    """Return the F1 of one query."""
    return row_score(hits, predicted, gold).f1


@dataclass(frozen=True, slots=True)
class Summary:
    """Figures of the official tables for one relation, or overall."""

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
    """Official result: the overall summary, a summary per relation (by name), and the rows if requested."""

    overall: Summary
    relations: dict[str, Summary]
    rows: Sequence[tuple[Pair, RowScore]] = ()


@dataclass(frozen=True, slots=True)
class Metric:
    """An edition's scorer, its average, and its treatment of missing queries.

    average: "relation" (mean of relation means) or "row".
    missing: "empty" (an empty answer) or "refuse" (the official script stops).
    detailed: whether the official table has micro averages and prediction counts.
    vacuous: precision if only the prediction is empty, and recall if only the gold is empty.
    """

    scorer: Scorer
    average: Literal["relation", "row"]
    missing: Literal["empty", "refuse"] = "empty"
    detailed: bool = False
    vacuous: float = 1.0

    def evaluate(self, predicted: Mapping[Pair, Any], gold: Mapping[Pair, Any], rows: bool = False) -> Table:
        """Score all gold pairs. Raise KeyError with a missing pair if the edition refuses missing queries."""
        if self.missing == "refuse" and not predicted.keys() >= gold.keys():
            raise KeyError(next(pair for pair in gold if pair not in predicted))
        tally = Tally(self, rows)
        answers = map(predicted.get, gold, repeat(()))
        for place, ((subject, relation), objects, answer) in enumerate(zip(gold, gold.values(), answers, strict=True)):
            tally.add(place, subject, relation, answer, objects)
        return tally.table()


class Tally:
    """Counts of row outcomes while rows are scored, and the rows themselves if wanted.

    Precision, recall and F1 follow from three small numbers, and few combinations of them occur. A million rows
    therefore take no more memory than a hundred. Array libraries are loaded only for the rare rows whose matching needs
    a search.
    """

    def __init__(self, metric: Metric, rows: bool = False) -> None:
        self._metric, self._score = metric, metric.scorer.score
        self._known: dict[Counts, Counts] = {}
        self._outcomes: defaultdict[str, Counter[Counts]] = defaultdict(Counter)
        self._rows: defaultdict[str, list[tuple[str, int, Counts]]] | None = defaultdict(list) if rows else None

    def add(self, place: int, subject: str, relation: str, predicted: Any, gold: Any) -> None:
        """Score one row of raw column values. Exceptions of the scorer for unreadable values are passed on.

        place: position of the row in the gold file; rows may come in any order.
        """
        outcome = self._score(predicted, gold, relation)
        outcome = self._known.setdefault(outcome, outcome)  # rows of equal outcome share one tuple
        self._outcomes[relation][outcome] += 1
        if self._rows is not None:
            self._rows[relation].append((subject, place, outcome))

    def table(self) -> Table:
        """Return the official result of all rows."""
        vacuous = self._metric.vacuous
        relations = {name: _summary(self._outcomes[name], vacuous) for name in sorted(self._outcomes)}
        overall = _summary(sum(self._outcomes.values(), start=Counter()), vacuous)
        if self._metric.average == "relation" and relations:
            p, r, f1_ = (_mean([getattr(s, name) for s in relations.values()]) for name in ("p", "r", "f1"))
            overall = replace(overall, p=p, r=r, f1=f1_)
        if self._rows is None:
            return Table(overall, relations)
        score = cache(partial(row_score, vacuous=vacuous))
        rows = [
            ((subject, name), score(*counts)) for name in relations for subject, _, counts in sorted(self._rows[name])
        ]
        return Table(overall, relations, rows)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _summary(outcomes: Counter[Counts], vacuous: float) -> Summary:
    scored = [(count, row_score(*outcome, vacuous)) for outcome, count in outcomes.items()]
    rows = outcomes.total()
    n = rows or 1
    hits, predicted, gold = (
        sum(count * getattr(score, name) for count, score in scored) for name in ("hits", "predicted", "gold")
    )
    micro_p = hits / predicted if predicted else 1.0
    micro_r = hits / gold if gold else 1.0
    micro_f1 = 2 * micro_p * micro_r / (micro_p + micro_r) if micro_p + micro_r else 0.0
    p, r, macro_f1 = (
        math.fsum(count * getattr(score, name) for count, score in scored) / n for name in ("p", "r", "f1")
    )
    empty = sum(count for count, score in scored if not score.predicted)
    return Summary(p, r, macro_f1, micro_p, micro_r, micro_f1, predicted / n, empty, rows)
