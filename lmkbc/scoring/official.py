"""Scores of predictions by the edition's official script, with counts of odd rows.

Predictions and gold are files, or rows in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmkbc.edition import Edition
from lmkbc.errors import InputError
from lmkbc.files.columns import Column, Rows, namesakes, respelled
from lmkbc.files.jsonl import no_collection
from lmkbc.names import subject_key
from lmkbc.run.subset import WHOLE, Subset
from lmkbc.scoring.table import WRONG, Pair, Table, Tally


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Official table, and the numbers of rows that were missing, unknown, repeated or malformed.

    repeated: rows that answer a query again, except where the gold file repeats the query as often. unreadable: queries
    that count as wrong because the run has no readable answer.
    """

    table: Table
    missing: int
    unknown: int
    repeated: int
    malformed: int
    unreadable: int = 0

    @property
    def remarks(self) -> str:
        """Return one line about the odd rows, or an empty string."""
        counts = {name: getattr(self, name) for name in ("missing", "unknown", "repeated", "malformed")}
        return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


def evaluate(
    predictions: Path | Rows,
    gold: Path | Rows,
    edition: Edition,
    *,
    strict: bool = False,
    rows: bool = False,
    subset: Subset = WHOLE,
    unreadable: Set[Pair] = frozenset(),
) -> Evaluation:
    """Score a file, or rows in memory.

    Odd rows are treated as in the official script, or refused if strict. subset: the gold queries that count.
    unreadable: queries without a row that count as wrong. Raise InputError if two rows answer one query with different
    objects: the official script would keep the last.
    """
    answers = Column(predictions, edition.column, str) if isinstance(predictions, Path) else predictions
    truth = Column(gold, edition.column, str | list[str]) if isinstance(gold, Path) else gold
    if not subset.is_whole:
        answers.keeps = truth.keeps = _keeps(truth, subset)
    with no_collection():
        given, asked = _Read.of(answers), _Read.of(truth)
        if given.again:
            namesakes(answers, given.again, agree=True)
        _check_gold(truth.path, edition, asked, subset)
        lacking = [pair for pair in asked.values if pair not in given.values]
        unknown = [pair for pair in given.values if pair not in asked.values]
        spelled = {} if strict else respelled(answers.path, lacking, unknown)
        wrong = {pair: WRONG for pair in lacking if pair in unreadable and pair not in spelled and not strict}
        missing = [pair for pair in lacking if pair not in spelled and pair not in wrong]
        taken = set(spelled.values())
        unknown = [pair for pair in unknown if pair not in taken]
        repeated = (given.again - asked.again).total()
        _refuse(answers.path, edition, asked, given, (missing, unknown, repeated), strict=strict)
        answered = given.values
        answered |= {pair: answered[row] for pair, row in spelled.items()} | wrong
        tally = Tally(edition.metric, rows)
        for pair, true in asked.values.items():
            try:
                tally.add(*pair, answered.get(pair, ()), true)
            except (TypeError, AttributeError, RecursionError):
                raise InputError(
                    f"{answers.path}, row {_shown(pair)}, field {edition.column}: not a list of strings, and the "
                    f"official script of edition {edition.name} stops there; write each object as one string"
                ) from None
        return Evaluation(tally.table(), len(missing), len(unknown), repeated, len(given.malformed), len(wrong))


def _keeps(gold: Rows, subset: Subset) -> Callable[[Any], bool]:
    """Return a function that tests whether a row belongs to the subset of the gold."""
    if subset.limit is None:
        return lambda row: subset.holds(row.Relation)
    rows = subset.rows(gold.rows(), lambda row: str(row.Relation))
    pairs = {(subject_key(row.SubjectEntity), row.Relation) for row in rows}
    return lambda row: (subject_key(row.SubjectEntity), row.Relation) in pairs


@dataclass(frozen=True, slots=True)
class _Read:
    """Values of a column by query; of repeated queries, the last value.

    again: number of further rows of repeated queries. malformed: queries whose value is no list of strings.
    """

    values: dict[Pair, Any]
    again: Counter[Pair]
    malformed: dict[Pair, None]

    @classmethod
    def of(cls, source: Rows) -> _Read:
        """Read all rows."""
        read = cls({}, Counter(), {})
        for row in source.rows():
            pair, value = (row.SubjectEntity, row.Relation), row.objects
            if pair in read.values:
                read.again[pair] += 1
            read.values[pair] = value
            if source.loose and not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
                read.malformed[pair] = None
        return read


def _check_gold(path: Path, edition: Edition, asked: _Read, subset: Subset) -> None:
    """Raise InputError for gold that is no list, or without any query."""
    first = next((pair for pair in asked.malformed if not isinstance(asked.values[pair], list)), None)
    if first is not None:
        raise InputError(
            f"{path}, row {_shown(first)}, field {edition.column}: no list of objects; give a labelled split"
        )
    if not asked.values:
        named = f" of {', '.join(sorted(subset.relations))}" if subset.relations else ""
        raise InputError(f"{path} has no query{named} that can be scored: give rows of a labelled split")


def _refuse(
    path: Path,
    edition: Edition,
    asked: _Read,
    given: _Read,
    odd: tuple[list[Pair], list[Pair], int],
    *,
    strict: bool,
) -> None:
    """Raise InputError for missing rows on which the official script stops; if strict, for all odd rows.

    odd: missing and unknown queries, and the number of repeated rows.
    """
    missing, unknown, repeated = odd
    malformed = list(given.malformed)
    if strict and (missing or unknown or repeated or malformed):
        first = [*missing[:1], *unknown[:1], *malformed[:1]]
        example = f", first {_shown(first[0])}" if first else ""
        raise InputError(
            f"{path}: {len(missing)} missing, {len(unknown)} unknown, {repeated} repeated and "
            f"{len(malformed)} malformed rows{example}; mend the file or drop --strict"
        )
    if missing and edition.metric.missing == "refuse":
        raise InputError(
            f"{path} lacks {len(missing)} of {len(asked.values)} queries, first {_shown(missing[0])}; the official "
            f"script of edition {edition.name} stops there: add these rows"
        )


def _shown(pair: Pair) -> str:
    return f"({pair[0]!r}, {pair[1]!r})"
