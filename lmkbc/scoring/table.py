"""Official scores: precision, recall and F1 per row, per relation and overall, as the editions print them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import repeat
from statistics import fmean
from typing import Annotated, Any, Literal, NamedTuple, get_type_hints

from lmkbc.scoring.matchers import Counts, Scorer
from lmkbc.types import Pair

WRONG = ("(no readable answer)",)
"""Answer of a failed query. It matches nothing, so it is wrong even if gold is empty; it counts as no object."""


class RowScore(NamedTuple):
    """Precision, recall and F1 of one query, and the counts behind them. A failed query has no predicted object."""

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


_Outcome = tuple[Counts, bool]
"""Counts of a query, and whether it has an answer. Without one, it counts as one wrong object in scores alone."""


def _scored(counts: Counts, answered: bool, vacuous: float) -> RowScore:
    score = row_score(*counts, vacuous)
    return score if answered else score._replace(predicted=0)


class ScoreColumn(NamedTuple):
    """Column of the score table: everything that shows scores loops over `COLUMNS`.

    label: heading in official tables. kind: "macro" is averaged over relations by editions that do so. official:
    whether the official table has it "always", only if it is "detailed", or "never". tile: name in the overall figures
    of a page. page: heading in a page's table, beside the macro columns, which a page always has. digits: decimals on a
    page. of_kept: whether it is undefined if nothing is kept. name: the figure of a `Summary`.
    """

    label: str
    kind: Literal["macro", "micro", "count"]
    official: Literal["always", "detailed", "never"] = "detailed"
    tile: str = ""
    page: str = ""
    digits: int = 3
    of_kept: bool = False
    name: str = ""

    @property
    def overall_name(self) -> str:
        """Return the name of the overall figure in JSON."""
        return f"macro_{self.name}" if self.kind == "macro" else self.name


@dataclass(frozen=True, slots=True)
class Summary:
    """Figures of the score table for one relation, or overall; each declares its column."""

    p: Annotated[float, ScoreColumn("P", "macro", "always", tile="macro precision", of_kept=True)]
    r: Annotated[float, ScoreColumn("R", "macro", "always", tile="macro recall")]
    f1: Annotated[float, ScoreColumn("F1", "macro", "always", tile="macro-F1")]
    micro_p: Annotated[float, ScoreColumn("micro P", "micro", of_kept=True)]
    micro_r: Annotated[float, ScoreColumn("micro R", "micro")]
    micro_f1: Annotated[float, ScoreColumn("micro F1", "micro", tile="micro-F1")]
    average_predictions: Annotated[float, ScoreColumn("avg. preds", "count", page="kept per query", digits=2)]
    empty_predictions: Annotated[int, ScoreColumn("empty", "count", page="empty answers", digits=0)]
    rows: int

    def shown(self, column: ScoreColumn) -> float | None:
        """Return the figure of a column for a table; None for the precision of nothing, which counts as 1."""
        return None if column.of_kept and self.empty_predictions == self.rows else getattr(self, column.name)


COLUMNS: list[ScoreColumn] = [
    figure.__metadata__[0]._replace(name=name)
    for name, figure in get_type_hints(Summary, include_extras=True).items()
    if hasattr(figure, "__metadata__")
]
OVERALL = sorted(
    COLUMNS, key=lambda column: (("macro", "micro", "count").index(column.kind), column.label[-2:] != "F1")
)
"""The columns in the order of the overall figures: of each kind, F1 comes first."""


@dataclass(frozen=True, slots=True)
class Table:
    """Official result: the overall summary, a summary per relation (by name), and the rows if requested."""

    overall: Summary
    relations: dict[str, Summary]
    rows: Sequence[tuple[Pair, RowScore]] = ()

    @property
    def beyond(self) -> str:
        """Return a sentence on scores above 1; "" if there are none."""
        names = [name for name, one in self.relations.items() if max(one.p, one.r, one.f1, one.micro_r) > 1]
        why = "the official script counts each number near a true one as right, so several answers of a row may match"
        return f"above 1 in {', '.join(names)}: {why} one object" if names else ""


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

    @property
    def columns(self) -> list[ScoreColumn]:
        """Return the columns of the official table."""
        shown = ("always", "detailed") if self.detailed else ("always",)
        return [column for column in COLUMNS if column.official in shown]

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
        self._known: dict[_Outcome, _Outcome] = {}
        self._outcomes: defaultdict[str, Counter[_Outcome]] = defaultdict(Counter)
        self._rows: defaultdict[str, list[tuple[str, int, _Outcome]]] | None = defaultdict(list) if rows else None

    def add(self, place: int, subject: str, relation: str, predicted: Any, gold: Any) -> None:
        """Score one row of raw column values. Exceptions of the scorer for unreadable values are passed on.

        place: position of the row in the gold file; rows may come in any order.
        """
        outcome = self._score(predicted, gold, relation), predicted is not WRONG
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
            macro = [column.name for column in COLUMNS if column.kind == "macro"]
            means: dict[str, Any] = {
                name: fmean([getattr(summary, name) for summary in relations.values()]) for name in macro
            }
            overall = replace(overall, **means)
        if self._rows is None:
            return Table(overall, relations)
        score = cache(partial(_scored, vacuous=vacuous))
        rows = [
            ((subject, name), score(*outcome)) for name in relations for subject, _, outcome in sorted(self._rows[name])
        ]
        return Table(overall, relations, rows)


def _summary(outcomes: Counter[_Outcome], vacuous: float) -> Summary:
    scored = [(count, row_score(*counts, vacuous)) for (counts, _), count in outcomes.items()]
    kept = sum(count * counts[1] for (counts, answered), count in outcomes.items() if answered)
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
    return Summary(
        p=p,
        r=r,
        f1=macro_f1,
        micro_p=micro_p,
        micro_r=micro_r,
        micro_f1=micro_f1,
        average_predictions=kept / n,
        empty_predictions=empty,
        rows=rows,
    )
