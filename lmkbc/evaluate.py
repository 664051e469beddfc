"""Scoring a predictions file as its edition's official script does, and saying what was odd about the file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmkbc import data
from lmkbc.errors import InputError
from lmkbc.score import Pair, Table
from lmkbc.types import Edition


@dataclass(frozen=True, slots=True)
class Evaluation:
    """An official table, and how many rows of the file were missing, unknown, repeated or malformed.

    repeated: rows that give a query's answer once more, unless the gold file repeats the query as often.
    """

    table: Table
    missing: int
    unknown: int
    repeated: int
    malformed: int

    @property
    def remarks(self) -> str:
        """One line on the odd rows, or an empty string."""
        counts = {name: getattr(self, name) for name in ("missing", "unknown", "repeated", "malformed")}
        return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


def evaluate_file(
    predictions: Path, gold: Path, edition: Edition, *, strict: bool = False, rows: bool = False
) -> Evaluation:
    """Score a file. Odd rows get the edition's official treatment, or are refused when strict.

    InputError where two rows answer one query, and not alike: officially the last would win.
    """
    with data.no_collection():
        return _evaluate_file(predictions, gold, edition, strict, rows)


def _evaluate_file(predictions: Path, gold: Path, edition: Edition, strict: bool, rows: bool) -> Evaluation:
    read = data.read_column(predictions, edition.column, str, agree=True)
    asked = data.read_column(gold, edition.column)
    found, truth = read.values, asked.values
    repeated = sum(max(count - asked.repeated.get(pair, 0), 0) for pair, count in read.repeated.items())
    same = found.keys() == truth.keys()
    missing = [] if same else [pair for pair in truth if pair not in found]
    unknown = [] if same else [pair for pair in found if pair not in truth]
    malformed = [] if read.sound else [pair for pair, value in found.items() if not _is_strings(value)]
    if strict and (missing or unknown or repeated or malformed):
        odd = missing or unknown or malformed
        example = f", first {_shown(odd[0])}" if odd else ""
        raise InputError(
            f"{predictions}: {len(missing)} missing, {len(unknown)} unknown, {repeated} repeated and "
            f"{len(malformed)} malformed rows{example}; mend the file or drop --strict"
        )
    if missing and edition.metric.missing == "refuse":
        raise InputError(
            f"{predictions} lacks {len(missing)} of {len(truth)} queries, first {_shown(missing[0])}; the official "
            f"script of edition {edition.name} stops there: add these rows"
        )
    table = _evaluate(predictions, found, truth, edition, rows)
    return Evaluation(table, len(missing), len(unknown), repeated, len(malformed))


def _evaluate(path: Path, found: dict[Pair, Any], truth: dict[Pair, Any], edition: Edition, rows: bool) -> Table:
    try:
        return edition.metric.evaluate(found, truth, rows=rows)
    except (TypeError, AttributeError):
        pair = next(pair for pair, value in found.items() if not _is_strings(value))
        raise InputError(
            f"{path}, row {_shown(pair)}, field {edition.column}: not a list of strings, and the official script of "
            f"edition {edition.name} stops there; write each object as one string"
        ) from None


def _is_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _shown(pair: Pair) -> str:
    return f"({pair[0]!r}, {pair[1]!r})"
