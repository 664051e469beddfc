"""The official scores: precision, recall and F1 per row, per relation and overall, as the editions print them."""

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
"""Answer of a failed query: nothing matches it, so that it is wrong even where gold is empty."""

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


def row_score(hits: int, predicted: int, gold: int, vacuous: float = 1.0) -> RowScore:
    """Score one query. Nothing predicted has precision 1, nothing to find has recall 1; precision is capped at 1.

    vacuous: what they are instead where the other side has something; no F1 depends on it.
    """
    p = min(hits / predicted, 1.0) if predicted else vacuous if gold else 1.0
    r = hits / gold if gold else vacuous if predicted else 1.0
    return RowScore(p, r, 2 * p * r / (p + r) if p + r else 0.0, hits, predicted, gold)


def f1(hits: int, predicted: int, gold: int) -> float:
    """F1 of one query."""
    return row_score(hits, predicted, gold).f1


@dataclass(frozen=True, slots=True)
class Summary:
    """Figures of the official tables for a relation, or over all of them."""

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
    vacuous: the precision of no answer where there is one, and the recall of an answer where there is none.
    """

    scorer: Scorer
    average: Literal["relation", "row"]
    missing: Literal["empty", "refuse"] = "empty"
    detailed: bool = False
    vacuous: float = 1.0

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
    """Rows as they are scored: how often each outcome occurs, and where the rows are wanted later, each of them too.

    A row's precision, recall and F1 follow from three small numbers, of which few combinations occur: so a million
    rows take no more memory than a hundred, and no array library has to be loaded, but for the rare rows whose matching
    needs a search. Rows that are wanted share the few scores. place: where the row stands in the gold file; rows may
    come in any order.
    """

    def __init__(self, metric: Metric, rows: bool = False) -> None:
        self._metric, self._score = metric, metric.scorer.score
        self._known: dict[Counts, Counts] = {}
        self._outcomes: defaultdict[str, Counter[Counts]] = defaultdict(Counter)
        self._rows: defaultdict[str, list[tuple[str, int, Counts]]] | None = defaultdict(list) if rows else None

    def add(self, place: int, subject: str, relation: str, predicted: Any, gold: Any) -> None:
        """Score one row of raw column values. Raises what the scorer does of a value that it cannot read."""
        outcome = self._score(predicted, gold, relation)
        outcome = self._known.setdefault(outcome, outcome)  # one tuple for all rows of this outcome
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
        rows = [((subject, name), score(*own)) for name in relations for subject, _, own in sorted(self._rows[name])]
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
