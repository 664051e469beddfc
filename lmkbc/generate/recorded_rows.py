"""Reading recorded files: rows checked field by field, scores brought to [0, 1].

Scores are read per file. All at most 0 and some below: log-probabilities, which are exponentiated. Some above 1, none
below 0: counts or logits of some kind, which are divided by the largest. Both signs: refused, for nobody can say what
they mean.
"""

from __future__ import annotations

import logging
import math
import re
from pathlib import Path
from typing import NoReturn

import msgspec

from lmkbc.data import numbered_lines, read_bytes, read_jsonl
from lmkbc.errors import InputError, did_you_mean
from lmkbc.types import Edition

_NO_NUMBER = re.compile(rb'"(\w+)"\s*:\s*-?(?:NaN|Infinity|inf|nan)\b')

log = logging.getLogger(__name__)


class CandidateRow(msgspec.Struct, gc=False):
    """One candidate of a candidates file."""

    object: str
    score: float = 1.0
    id: str | None = None
    source: str | None = None
    truth: float | None = None


class RecordedRow(msgspec.Struct, gc=False):
    """One line of a completions or a candidates file. A completion that is null is a call that failed.

    pooled: the scores are of all voices together, whose names a candidate's source lists.
    """

    SubjectEntity: str
    Relation: str
    SubjectEntityID: str | None = None
    model: str | None = None
    completions: list[str | None] | None = None
    candidates: list[CandidateRow] | None = None
    existence_probabilities: dict[str, float] | list[float] | None = None
    pooled: bool = False

    @property
    def existence(self) -> float | None:
        """P(an object exists): {"YES": p, "NO": q} without what is neither, or the mean of one probability per draw."""
        given = self.existence_probabilities
        if not given:
            return None
        if isinstance(given, list):
            return math.fsum(given) / len(given)
        answers = {answer.casefold(): p for answer, p in given.items()}
        yes, no = answers.get("yes", 0.0), answers.get("no", 0.0)
        return yes / (yes + no) if yes + no > 0 else None


def read_rows(path: Path, edition: Edition) -> list[RecordedRow]:
    """The rows of a recorded file. InputError names file, line and field."""
    if bad := _NO_NUMBER.search(read_bytes(path)):
        line = next(n for n, content in numbered_lines(read_bytes(path)) if _NO_NUMBER.search(content))
        raise InputError(f"{path}, line {line}, field {bad[1].decode()}: not a finite number; give one in [0, 1]")
    rows = read_jsonl(path, RecordedRow)
    known = frozenset(edition.relations)
    for index, row in enumerate(rows):
        if row.Relation not in known:
            hint = did_you_mean(row.Relation, edition.relations)
            _refuse(path, index, "Relation", f"{row.Relation!r} is no relation of edition {edition.name}; {hint}")
        if (row.completions is None) == (row.candidates is None):
            _refuse(path, index, "completions", "a row has either completions or candidates; give one of them")
        for one in row.candidates or ():
            if one.truth is not None and not 0 <= one.truth <= 1:
                _refuse(path, index, "truth", f"{one.truth} is no probability; give a number in [0, 1]")
        given = row.existence_probabilities
        for p in (given.values() if isinstance(given, dict) else given) or ():
            if not 0 <= p <= 1:
                _refuse(path, index, "existence_probabilities", f"{p} is no probability; give numbers in [0, 1]")
    _rescale(path, rows)
    return rows


def _rescale(path: Path, rows: list[RecordedRow]) -> None:
    """Bring a file's scores to [0, 1], in place."""
    scores = [candidate.score for row in rows for candidate in row.candidates or ()]
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    if low >= 0 and high <= 1:
        return
    if low < 0 < high:
        bad = next(i for i, row in enumerate(rows) if any(c.score < 0 for c in row.candidates or ()))
        reason = f"a score is negative while another is {high}; give probabilities, or log-probabilities throughout"
        _refuse(path, bad, "candidates", reason)
    log.warning(
        "%s: scores lie in [%g, %g]; %s", path, low, high, "exponentiated" if low < 0 else "divided by the largest"
    )
    for row in rows:
        for candidate in row.candidates or ():
            candidate.score = math.exp(candidate.score) if low < 0 else candidate.score / high


def _refuse(path: Path, index: int, field: str, reason: str) -> NoReturn:
    line = [number for number, _ in numbered_lines(read_bytes(path))][index]
    raise InputError(f"{path}, line {line}, field {field}: {reason}")
